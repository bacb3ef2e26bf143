// Attention by the matrix units of Hopper: for f16 and bf16, and heads of 64 or 128 elements.
//
// The same algorithm as in attention_tensor.cu, with roles (Shah et al. 2024): four warps copy tiles of keys and values to
// shared memory, and two groups of four warps, with 64 queries each, multiply them by instructions of the whole group that run
// while it does something else. The scores of the next tile are computed while the values of the last one are added up, and
// the groups take turns in asking for products, so that one has its exponentials while the other one multiplies.
//
// Facts about descriptors and fragments are from NVIDIA's "Parallel Thread Execution ISA", chapter "Asynchronous Warpgroup
// Level Matrix Instructions".
//
// q and out are heads × seq × HEAD_DIM, k and v (heads / group) × seq × HEAD_DIM, all at addresses that are multiples of 16.
// Launched with a block of 384 threads for every 128 queries of every head.

#include "copies.cuh"
#include "wgmma.cuh"

static constexpr unsigned int GROUP_THREADS = 128;
static constexpr unsigned int GROUPS = 2;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static constexpr unsigned int GROUP_QUERIES = 64;
static constexpr unsigned int BLOCK_QUERIES = GROUPS * GROUP_QUERIES;
static constexpr unsigned int KEYS = 128;
// Threads that copy keys, and as many that copy values.
static constexpr unsigned int COPIERS = 64;
// Tiles of keys that there is memory for, and as many of values.
static constexpr unsigned int STAGES = 2;

// ---- tiles in shared memory

// Elements of a row that lie together: 128 bytes, the widest swizzle. Longer rows are in several panels.
static constexpr unsigned int PANEL = 64;

// Copies rows from `first` on to a tile of ROWS; rows beyond the end become zeros. The pieces of 16 bytes of a row are
// exchanged as the matrix units expect it.
template <typename T, unsigned int HEAD_DIM, unsigned int ROWS, unsigned int THREADS>
static __device__ __forceinline__ void copy_tile(unsigned int tile, const T* from, unsigned int first, unsigned int end, unsigned int thread) {
    constexpr unsigned int PIECES = HEAD_DIM / 8;
    constexpr unsigned int STEP = THREADS / PIECES;
    const unsigned int piece = thread % PIECES;
    const unsigned int to = tile + piece / 8 * (ROWS * 128);
#pragma unroll
    for (unsigned int row = thread / PIECES; row < ROWS; row += STEP) {
        const bool is_there = first + row < end;
        const T* const source = from + static_cast<size_t>(is_there ? first + row : 0) * HEAD_DIM + piece * 8;
        copy_later(to + row * 128 + (piece % 8 ^ row % 8) * 16, source, is_there);
    }
    // What this thread has copied is there, and the matrix units may read it as soon as they are told.
    wait_for_copies();
    show_to_matrix_units();
}

// ---- turns

// Named barriers of the groups: 1 and 2 for their turns, 3 and 4 for each alone.
static __device__ __forceinline__ void await_turn(unsigned int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(GROUPS * GROUP_THREADS) : "memory");
}

static __device__ __forceinline__ void give_turn(unsigned int group) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + group), "n"(GROUPS * GROUP_THREADS) : "memory");
}

static __device__ __forceinline__ void await_group(unsigned int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(3 + group), "n"(GROUP_THREADS) : "memory");
}

// ---- attention

// The part of a block that is the same for all roles.
template <typename T, unsigned int HEAD_DIM> struct Plan {
    static constexpr unsigned int Q_BYTES = GROUP_QUERIES * HEAD_DIM * sizeof(T);
    static constexpr unsigned int TILE_BYTES = KEYS * HEAD_DIM * sizeof(T);
    unsigned int q_tiles;
    unsigned int k_tiles;
    unsigned int v_tiles;
    // Barriers: for each tile of keys and then for each of values, that it is full, and that it is empty.
    unsigned int full;
    unsigned int empty;
    unsigned int first_query;
    unsigned int end;
    unsigned int tiles;

    __device__ __forceinline__ unsigned int barrier_of(unsigned int base, bool is_value, unsigned int tile) const {
        return base + ((is_value ? STAGES : 0) + tile % STAGES) * 8;
    }
};

// Copies tiles of keys, or of values, as soon as there is room for one: half of a group's threads do the one, half the other.
template <typename T, unsigned int HEAD_DIM>
static __device__ __forceinline__ void produce(const Plan<T, HEAD_DIM>& plan, const T* k, const T* v, unsigned int seq) {
    const bool is_value = threadIdx.x >= COPIERS;
    const T* const from = is_value ? v : k;
    const unsigned int tiles = is_value ? plan.v_tiles : plan.k_tiles;
    for (unsigned int tile = 0; tile < plan.tiles; ++tile) {
        if (tile >= STAGES) {
            wait_for_round(plan.barrier_of(plan.empty, is_value, tile), (tile / STAGES - 1) % 2);
        }
        copy_tile<T, HEAD_DIM, KEYS, COPIERS>(tiles + tile % STAGES * plan.TILE_BYTES, from, tile * KEYS, seq, threadIdx.x % COPIERS);
        arrive(plan.barrier_of(plan.full, is_value, tile));
    }
}

// What a thread of a group knows of its two queries: rows l / 4 and l / 4 + 8 of the 16 of its warp.
template <unsigned int HEAD_DIM> struct Running {
    float sums[HEAD_DIM / 2] = {};
    float maximum[2] = {-infinity(), -infinity()};
    float total[2] = {};
};

// Asks for the scores of a tile of keys.
template <typename T, unsigned int HEAD_DIM>
static __device__ __forceinline__ void start_scores(const Plan<T, HEAD_DIM>& plan, float (&scores)[KEYS / 2], unsigned int q_tile,
                                                    unsigned int tile) {
    const unsigned int k_tile = plan.k_tiles + tile % STAGES * plan.TILE_BYTES;
    begin_products();
#pragma unroll
    for (unsigned int step = 0; step < HEAD_DIM / 16; ++step) {
        const unsigned int panel = step * 16 / PANEL;
        const unsigned int within = step * 16 % PANEL * sizeof(T);
        const unsigned long long queries = describe_rows(q_tile + panel * GROUP_QUERIES * 128 + within);
        const unsigned long long keys = describe_rows(k_tile + panel * KEYS * 128 + within);
        multiply(T(), scores, queries, keys, step > 0);
    }
    end_of_products();
}

// Asks for the weighted values of a tile, which are added to the sums.
template <typename T, unsigned int HEAD_DIM>
static __device__ __forceinline__ void start_values(const Plan<T, HEAD_DIM>& plan, Running<HEAD_DIM>& running,
                                                    const unsigned int (&weights)[KEYS / 4], unsigned int tile) {
    const unsigned int v_tile = plan.v_tiles + tile % STAGES * plan.TILE_BYTES;
    begin_products();
#pragma unroll
    for (unsigned int step = 0; step < KEYS / 16; ++step) {
        multiply_columns(T(), running.sums, weights + 4 * step, describe_columns(v_tile + step * 16 * 128, KEYS * 128));
    }
    end_of_products();
}

// Scores of keys that a query must not see become −∞.
template <bool CAUSAL>
static __device__ __forceinline__ void mask(float (&scores)[KEYS / 2], unsigned int query, unsigned int first_key, unsigned int seq) {
#pragma unroll
    for (unsigned int i = 0; i < KEYS / 2; ++i) {
        const unsigned int key = first_key + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (key >= seq || (CAUSAL && key > query + i % 4 / 2 * 8)) {
            scores[i] = -infinity();
        }
    }
}

// Scores become weights under the maximum of all that is known by now; `shrink` is what earlier sums are worth under it.
template <unsigned int HEAD_DIM>
static __device__ __forceinline__ void weigh(float (&scores)[KEYS / 2], Running<HEAD_DIM>& running, float (&shrink)[2], float scale) {
#pragma unroll
    for (unsigned int half = 0; half < 2; ++half) {
        float maximum = running.maximum[half];
#pragma unroll
        for (unsigned int i = 2 * half; i < KEYS / 2; i += 4) {
            maximum = fmaxf(maximum, fmaxf(scores[i], scores[i + 1]));
        }
        // The four lanes of a row agree.
        maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, 2));
        shrink[half] = power_of_two((running.maximum[half] - maximum) * scale);
        const float offset = maximum * scale;
        float total = 0.0f;
#pragma unroll
        for (unsigned int i = 2 * half; i < KEYS / 2; i += 4) {
            scores[i] = power_of_two(scores[i] * scale - offset);
            scores[i + 1] = power_of_two(scores[i + 1] * scale - offset);
            total += scores[i] + scores[i + 1];
        }
        running.maximum[half] = maximum;
        running.total[half] = running.total[half] * shrink[half] + total;
    }
}

template <typename T> static __device__ __forceinline__ void round_weights(const float (&scores)[KEYS / 2], unsigned int (&weights)[KEYS / 4]) {
#pragma unroll
    for (unsigned int i = 0; i < KEYS / 4; ++i) {
        weights[i] = narrow_pair(T(), scores[2 * i], scores[2 * i + 1]);
    }
}

template <unsigned int HEAD_DIM> static __device__ __forceinline__ void shrink_sums(Running<HEAD_DIM>& running, const float (&shrink)[2]) {
#pragma unroll
    for (unsigned int i = 0; i < HEAD_DIM / 2; ++i) {
        running.sums[i] *= shrink[i % 4 / 2];
    }
}

// One group of four warps: 64 queries against all tiles.
template <typename T, unsigned int HEAD_DIM, bool CAUSAL>
static __device__ __forceinline__ void consume(const Plan<T, HEAD_DIM>& plan, const T* q, T* out, unsigned int seq, unsigned int group) {
    const unsigned int thread = threadIdx.x % GROUP_THREADS;
    const unsigned int q_tile = plan.q_tiles + group * plan.Q_BYTES;
    const unsigned int first_query = plan.first_query + group * GROUP_QUERIES;
    const unsigned int query = first_query + thread / WARP * 16 + thread % WARP / 4;
    // log₂ e, as powers of two are cheaper than those of e.
    const float scale = 1.44269504f * rsqrtf(static_cast<float>(HEAD_DIM));
    copy_tile<T, HEAD_DIM, GROUP_QUERIES, GROUP_THREADS>(q_tile, q, first_query, seq, thread);
    await_group(group);

    const auto release = [&](bool is_value, unsigned int tile) {
        if (thread % WARP == 0) {
            arrive(plan.barrier_of(plan.empty, is_value, tile));
        }
    };
    const auto see = [&](float(&scores)[KEYS / 2], unsigned int tile) {
        if ((tile + 1) * KEYS > (CAUSAL ? min(seq, first_query) : seq)) {
            mask<CAUSAL>(scores, query, tile * KEYS, seq);
        }
    };
    Running<HEAD_DIM> running;
    float scores[KEYS / 2];
    unsigned int weights[KEYS / 4];
    float shrink[2];
    wait_for_round(plan.barrier_of(plan.full, false, 0), 0);
    start_scores(plan, scores, q_tile, 0);
    wait_for_products<0>(scores);
    release(false, 0);
    see(scores, 0);
    weigh(scores, running, shrink, scale);
    round_weights<T>(scores, weights);
    if (group == 1 && plan.tiles > 1) {
        give_turn(0);
    }
    for (unsigned int tile = 1; tile < plan.tiles; ++tile) {
        wait_for_round(plan.barrier_of(plan.full, false, tile), tile / STAGES % 2);
        await_turn(group);
        start_scores(plan, scores, q_tile, tile);
        wait_for_round(plan.barrier_of(plan.full, true, tile - 1), (tile - 1) / STAGES % 2);
        start_values(plan, running, weights, tile - 1);
        if (group == 0 || tile + 1 < plan.tiles) {
            give_turn(1 - group);
        }
        wait_for_products<1>(scores);
        release(false, tile);
        see(scores, tile);
        weigh(scores, running, shrink, scale);
        wait_for_products<0>(running.sums);
        release(true, tile - 1);
        shrink_sums(running, shrink);
        round_weights<T>(scores, weights);
    }
    wait_for_round(plan.barrier_of(plan.full, true, plan.tiles - 1), (plan.tiles - 1) / STAGES % 2);
    start_values(plan, running, weights, plan.tiles - 1);
    wait_for_products<0>(running.sums);

#pragma unroll
    for (unsigned int half = 0; half < 2; ++half) {
        float total = running.total[half];
        total += __shfl_xor_sync(ALL_LANES, total, 1);
        total += __shfl_xor_sync(ALL_LANES, total, 2);
        const float share = 1.0f / total;
        if (query + half * 8 < seq) {
            T* const row = out + static_cast<size_t>(query + half * 8) * HEAD_DIM + thread % 4 * 2;
#pragma unroll
            for (unsigned int i = 2 * half; i < HEAD_DIM / 2; i += 4) {
                *reinterpret_cast<unsigned int*>(row + i / 4 * 8) = narrow_pair(T(), running.sums[i] * share, running.sums[i + 1] * share);
            }
        }
    }
}

// out ← softmax(q·kᵀ / √HEAD_DIM)·v for one block of queries of one head.
template <typename T, unsigned int HEAD_DIM, bool CAUSAL>
static __device__ __forceinline__ void attend(const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int group) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[4 * STAGES];
    const unsigned int blocks = (seq + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    const unsigned int head = blockIdx.x / blocks;
    // With a causal mask the last queries have most to do: they go first, so that short blocks fill the gaps at the end.
    const unsigned int block = CAUSAL ? blocks - 1 - blockIdx.x % blocks : blockIdx.x % blocks;
    const size_t matrix = static_cast<size_t>(seq) * HEAD_DIM;

    Plan<T, HEAD_DIM> plan;
    plan.q_tiles = shared_address(memory);
    plan.k_tiles = plan.q_tiles + GROUPS * plan.Q_BYTES;
    plan.v_tiles = plan.k_tiles + STAGES * plan.TILE_BYTES;
    plan.full = shared_address(barriers);
    plan.empty = plan.full + 2 * STAGES * 8;
    plan.first_query = block * BLOCK_QUERIES;
    plan.end = CAUSAL ? min(seq, plan.first_query + BLOCK_QUERIES) : seq;
    plan.tiles = (plan.end + KEYS - 1) / KEYS;
    if (threadIdx.x == 0) {
        for (unsigned int i = 0; i < 2 * STAGES; ++i) {
            start_barrier(plan.full + i * 8, COPIERS);
            start_barrier(plan.empty + i * 8, GROUPS * GROUP_THREADS / WARP);
        }
    }
    __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        // Registers move to those who multiply: 40 + 2 · 232 is three times the 168 that all start with.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        produce(plan, k + head / group * matrix, v + head / group * matrix, seq);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume<T, HEAD_DIM, CAUSAL>(plan, q + head * matrix, out + head * matrix, seq, threadIdx.x / GROUP_THREADS - 1);
    }
}

#else

// Other devices have no such instructions, and nobody launches this there.
template <typename T, unsigned int HEAD_DIM, bool CAUSAL>
static __device__ void attend(const T*, const T*, const T*, T*, unsigned int, unsigned int) {}

#endif

#define ATTENTION(T, suffix, HEAD_DIM)                                                                                 \
    extern "C" __global__ void __launch_bounds__((GROUPS + 1) * GROUP_THREADS, 1)                                      \
        attention_hopper_##HEAD_DIM##_##suffix(const T* q, const T* k, const T* v, T* out, unsigned int seq,           \
                                               unsigned int group) {                                                   \
        attend<T, HEAD_DIM, false>(q, k, v, out, seq, group);                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__((GROUPS + 1) * GROUP_THREADS, 1)                                      \
        attention_causal_hopper_##HEAD_DIM##_##suffix(const T* q, const T* k, const T* v, T* out, unsigned int seq,    \
                                                      unsigned int group) {                                            \
        attend<T, HEAD_DIM, true>(q, k, v, out, seq, group);                                                           \
    }
ATTENTION(__half, f16, 64)
ATTENTION(__half, f16, 128)
ATTENTION(__nv_bfloat16, bf16, 64)
ATTENTION(__nv_bfloat16, bf16, 128)
