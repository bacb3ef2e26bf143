// Attention by tensor cores: for f16 and bf16, and heads of 64 or 128 elements.
//
// Blocks of queries stay with a block of threads, blocks of keys and values pass by, and the softmax is computed as they do
// (Milakov and Gimelshein 2018; Dao 2023): of every query a running maximum m and sum s are kept, and what was added up
// before a larger maximum came is scaled down. Both products are mma.sync.m16n8k16 with sums in f32; the accumulators of the
// first, exponentiated and rounded, are in the right registers to be the left operand of the second.
//
// q and out are heads × seq × HEAD_DIM, k and v (heads / group) × seq × HEAD_DIM, all at addresses that are multiples of 16.
// Launched with a block of WARPS · 32 threads for every WARPS · TILES · 16 queries of every head.

#include "copies.cuh"

// ---- tiles in shared memory

// Where 8 elements of a row of a tile are: pieces of 16 bytes are exchanged within each row, so that the same piece of 8
// neighbouring rows is in 8 different groups of banks.
template <int HEAD_DIM> static __device__ __forceinline__ unsigned int place(unsigned int row, unsigned int piece) {
    return row * (HEAD_DIM * 2) + ((piece ^ (row & 7)) * 16);
}

// Starts copying ROWS rows from `first` on to a tile; rows beyond the end become zeros.
template <typename T, int HEAD_DIM, int ROWS, int THREADS>
static __device__ __forceinline__ void copy_tile(unsigned int tile, const T* from, unsigned int first, unsigned int end) {
    constexpr unsigned int PIECES = HEAD_DIM / 8;
    static_assert(ROWS * PIECES % THREADS == 0, "every thread copies as much");
#pragma unroll
    for (unsigned int i = 0; i < ROWS * PIECES / THREADS; ++i) {
        const unsigned int index = i * THREADS + threadIdx.x;
        const unsigned int row = index / PIECES;
        const unsigned int piece = index % PIECES;
        const bool is_there = first + row < end;
        // What is not there is not read, but its address must be one.
        const size_t offset = static_cast<size_t>(is_there ? first + row : 0) * HEAD_DIM + piece * 8;
        copy_later(tile + place<HEAD_DIM>(row, piece), from + offset, is_there);
    }
}

// ---- tensor cores

// Four matrices of 8 × 8 elements; lane l gives the address of row l % 8 of matrix l / 8.
static __device__ __forceinline__ void load_matrices(unsigned int (&to)[4], unsigned int address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

static __device__ __forceinline__ void load_transposed(unsigned int (&to)[4], unsigned int address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

// sum ← sum + a·b for 16 × 16 by 16 × 8.
#define MULTIPLY(T, type)                                                                                              \
    static __device__ __forceinline__ void multiply(T, float(&sum)[4], const unsigned int(&a)[4], unsigned int b0,     \
                                                    unsigned int b1) {                                                 \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "                  \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                                   \
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                  \
    }
MULTIPLY(__half, "f16")
MULTIPLY(__nv_bfloat16, "bf16")

// ---- attention

// What a warp knows of its TILES · 16 queries. Lane l has rows l / 4 and l / 4 + 8 of every tile, and of every 8 columns those
// at 2 · (l % 4) and beside it.
template <int HEAD_DIM, int TILES> struct Running {
    float sums[TILES][HEAD_DIM / 8][4] = {};
    float maximum[TILES][2];
    float total[TILES][2] = {};

    __device__ __forceinline__ Running() {
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            maximum[tile][0] = maximum[tile][1] = -infinity();
        }
    }
};

// Scores of a warp's queries against KEYS keys: rows of q in shared memory times rows of k.
template <typename T, int HEAD_DIM, int TILES, int KEYS>
static __device__ __forceinline__ void score(float (&scores)[TILES][KEYS / 8][4], unsigned int q_tile, unsigned int first_row,
                                             unsigned int k_tile) {
    const unsigned int lane = threadIdx.x % WARP;
#pragma unroll
    for (int step = 0; step < HEAD_DIM / 16; ++step) {
        unsigned int q[TILES][4];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            load_matrices(q[tile], q_tile + place<HEAD_DIM>(first_row + tile * 16 + lane % 16, 2 * step + lane / 16));
        }
#pragma unroll
        for (int pair = 0; pair < KEYS / 16; ++pair) {
            unsigned int k[4];
            load_matrices(k, k_tile + place<HEAD_DIM>(pair * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                multiply(T(), scores[tile][2 * pair], q[tile], k[0], k[1]);
                multiply(T(), scores[tile][2 * pair + 1], q[tile], k[2], k[3]);
            }
        }
    }
}

// Scores become weights 2^(scale · (score − maximum)) under the maximum of all that is known by now.
template <int HEAD_DIM, int TILES, int KEYS>
static __device__ __forceinline__ void weigh(float (&scores)[TILES][KEYS / 8][4], Running<HEAD_DIM, TILES>& running, float scale) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float maximum = running.maximum[tile][half];
#pragma unroll
            for (int column = 0; column < KEYS / 8; ++column) {
                maximum = fmaxf(maximum, fmaxf(scores[tile][column][2 * half], scores[tile][column][2 * half + 1]));
            }
            // The four lanes of a row agree.
            maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, 1));
            maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, 2));
            const float shrink = power_of_two((running.maximum[tile][half] - maximum) * scale);
            const float offset = maximum * scale;
            float total = 0.0f;
#pragma unroll
            for (int column = 0; column < KEYS / 8; ++column) {
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    scores[tile][column][i] = power_of_two(scores[tile][column][i] * scale - offset);
                    total += scores[tile][column][i];
                }
            }
            running.maximum[tile][half] = maximum;
            running.total[tile][half] = running.total[tile][half] * shrink + total;
#pragma unroll
            for (int column = 0; column < HEAD_DIM / 8; ++column) {
                running.sums[tile][column][2 * half] *= shrink;
                running.sums[tile][column][2 * half + 1] *= shrink;
            }
        }
    }
}

// Adds the rows of v, weighted.
template <typename T, int HEAD_DIM, int TILES, int KEYS>
static __device__ __forceinline__ void accumulate(Running<HEAD_DIM, TILES>& running, const float (&weights)[TILES][KEYS / 8][4],
                                                  unsigned int v_tile) {
    const unsigned int lane = threadIdx.x % WARP;
#pragma unroll
    for (int step = 0; step < KEYS / 16; ++step) {
        unsigned int p[TILES][4];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float(&part)[4] = weights[tile][2 * step + i / 2];
                p[tile][i] = narrow_pair(T(), part[i % 2 * 2], part[i % 2 * 2 + 1]);
            }
        }
#pragma unroll
        for (int pair = 0; pair < HEAD_DIM / 16; ++pair) {
            unsigned int v[4];
            load_transposed(v, v_tile + place<HEAD_DIM>(step * 16 + lane % 16, 2 * pair + lane / 16));
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                multiply(T(), running.sums[tile][2 * pair], p[tile], v[0], v[1]);
                multiply(T(), running.sums[tile][2 * pair + 1], p[tile], v[2], v[3]);
            }
        }
    }
}

// Scores of keys that a query must not see become −∞: those beyond the end, and with a causal mask those behind it.
template <bool CAUSAL, int TILES, int KEYS>
static __device__ __forceinline__ void mask(float (&scores)[TILES][KEYS / 8][4], unsigned int first_query, unsigned int first_key,
                                            unsigned int seq) {
    const unsigned int lane = threadIdx.x % WARP;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int column = 0; column < KEYS / 8; ++column) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned int key = first_key + column * 8 + lane % 4 * 2 + i % 2;
                const unsigned int query = first_query + tile * 16 + lane / 4 + i / 2 * 8;
                if (key >= seq || (CAUSAL && key > query)) {
                    scores[tile][column][i] = -infinity();
                }
            }
        }
    }
}

// Divides by the sums of weights and writes the rows that exist.
template <typename T, int HEAD_DIM, int TILES>
static __device__ __forceinline__ void finish(const Running<HEAD_DIM, TILES>& running, T* out, unsigned int first_query, unsigned int seq) {
    const unsigned int lane = threadIdx.x % WARP;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = running.total[tile][half];
            total += __shfl_xor_sync(ALL_LANES, total, 1);
            total += __shfl_xor_sync(ALL_LANES, total, 2);
            const float share = 1.0f / total;
            const unsigned int query = first_query + tile * 16 + half * 8 + lane / 4;
            if (query < seq) {
                T* const row = out + static_cast<size_t>(query) * HEAD_DIM + lane % 4 * 2;
#pragma unroll
                for (int column = 0; column < HEAD_DIM / 8; ++column) {
                    const float(&sums)[4] = running.sums[tile][column];
                    *reinterpret_cast<unsigned int*>(row + column * 8) =
                        narrow_pair(T(), sums[2 * half] * share, sums[2 * half + 1] * share);
                }
            }
        }
    }
}

// out ← softmax(q·kᵀ / √HEAD_DIM)·v for one block of queries of one head.
template <typename T, int HEAD_DIM, bool CAUSAL, int WARPS, int TILES, int KEYS>
static __device__ __forceinline__ void attend(const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int group) {
    constexpr unsigned int QUERIES = WARPS * TILES * 16;
    constexpr unsigned int TILE_BYTES = KEYS * HEAD_DIM * sizeof(T);
    constexpr unsigned int THREADS = WARPS * WARP;
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned int q_tile = shared_address(memory);
    const unsigned int k_tiles = q_tile + QUERIES * HEAD_DIM * sizeof(T);
    const unsigned int v_tiles = k_tiles + 2 * TILE_BYTES;

    const unsigned int blocks = (seq + QUERIES - 1) / QUERIES;
    const unsigned int head = blockIdx.x / blocks;
    // With a causal mask the last queries have most to do: they go first, so that short blocks fill the gaps at the end.
    const unsigned int block = CAUSAL ? blocks - 1 - blockIdx.x % blocks : blockIdx.x % blocks;
    const size_t matrix = static_cast<size_t>(seq) * HEAD_DIM;
    q += head * matrix;
    out += head * matrix;
    k += head / group * matrix;
    v += head / group * matrix;

    const unsigned int first_row = threadIdx.x / WARP * TILES * 16;
    const unsigned int first_query = block * QUERIES + first_row;
    const unsigned int end = CAUSAL ? min(seq, (block + 1) * QUERIES) : seq;
    // log₂ e, as powers of two are cheaper than those of e.
    const float scale = 1.44269504f * rsqrtf(static_cast<float>(HEAD_DIM));

    copy_tile<T, HEAD_DIM, QUERIES, THREADS>(q_tile, q, block * QUERIES, seq);
    copy_tile<T, HEAD_DIM, KEYS, THREADS>(k_tiles, k, 0, seq);
    copy_tile<T, HEAD_DIM, KEYS, THREADS>(v_tiles, v, 0, seq);
    end_of_copies();
    Running<HEAD_DIM, TILES> running;
    for (unsigned int first_key = 0, stage = 0; first_key < end; first_key += KEYS, stage ^= 1) {
        wait_for_copies<0>();
        // All have their copies, and nobody reads the tiles of the last round any more: they are filled while this one computes.
        __syncthreads();
        if (first_key + KEYS < end) {
            copy_tile<T, HEAD_DIM, KEYS, THREADS>(k_tiles + (stage ^ 1) * TILE_BYTES, k, first_key + KEYS, seq);
            copy_tile<T, HEAD_DIM, KEYS, THREADS>(v_tiles + (stage ^ 1) * TILE_BYTES, v, first_key + KEYS, seq);
            end_of_copies();
        }
        if (CAUSAL && first_key >= first_query + TILES * 16) {
            continue;
        }
        float scores[TILES][KEYS / 8][4] = {};
        score<T, HEAD_DIM, TILES, KEYS>(scores, q_tile, first_row, k_tiles + stage * TILE_BYTES);
        if (first_key + KEYS > (CAUSAL ? min(seq, first_query) : seq)) {
            mask<CAUSAL, TILES, KEYS>(scores, first_query, first_key, seq);
        }
        weigh<HEAD_DIM, TILES, KEYS>(scores, running, scale);
        accumulate<T, HEAD_DIM, TILES, KEYS>(running, scores, v_tiles + stage * TILE_BYTES);
    }
    finish<T, HEAD_DIM, TILES>(running, out, first_query, seq);
}

#define ATTENTION(T, suffix, HEAD_DIM, WARPS, TILES, KEYS, BLOCKS)                                                     \
    extern "C" __global__ void __launch_bounds__(WARPS * WARP, BLOCKS) attention_tensor_##HEAD_DIM##_##suffix(         \
        const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int group) {                            \
        attend<T, HEAD_DIM, false, WARPS, TILES, KEYS>(q, k, v, out, seq, group);                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(WARPS * WARP, BLOCKS) attention_causal_tensor_##HEAD_DIM##_##suffix(  \
        const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int group) {                            \
        attend<T, HEAD_DIM, true, WARPS, TILES, KEYS>(q, k, v, out, seq, group);                                       \
    }
ATTENTION(__half, f16, 64, 4, 2, 64, 2)
ATTENTION(__half, f16, 128, 4, 2, 64, 2)
ATTENTION(__nv_bfloat16, bf16, 64, 4, 2, 64, 2)
ATTENTION(__nv_bfloat16, bf16, 128, 4, 2, 64, 2)
