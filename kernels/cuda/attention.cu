// Attention of many queries in plain arithmetic, for every type; the tiled kernels take heads of any length up to 128.
//
// q and out are heads × seq × head_dim, k and v (heads / group) × seq × head_dim, at addresses that are multiples of 16.

#include "common.cuh"

// ---- naive: all scores in memory, one kernel for each step

// scores[head][query][key] ← q·k / √head_dim, a thread for each; keys that a query must not see are left out.
template <typename T, bool CAUSAL>
static __device__ __forceinline__ void naive_scores(const T* q, const T* k, float* scores, size_t n, unsigned int seq, unsigned int head_dim,
                                                    unsigned int group) {
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned int key = index % seq;
    const size_t row = index / seq;
    if (index >= n || (CAUSAL && key > row % seq)) {
        return;
    }
    q += row * head_dim;
    k += (row / seq / group * seq + key) * head_dim;
    float score = 0.0f;
    for (unsigned int i = 0; i < head_dim; ++i) {
        score += widen(q[i]) * widen(k[i]);
    }
    scores[index] = score * rsqrtf(static_cast<float>(head_dim));
}

// Every row of scores becomes e^(score − max) / Σ e^(score − max), a block for each.
template <bool CAUSAL> static __device__ __forceinline__ void naive_softmax(float* scores, unsigned int seq) {
    __shared__ float maxima[MOST_WARPS];
    __shared__ float sums[MOST_WARPS];
    const size_t row = blockIdx.x;
    const unsigned int keys = CAUSAL ? row % seq + 1 : seq;
    scores += row * seq;
    float maximum = -infinity();
    for (unsigned int key = threadIdx.x; key < keys; key += blockDim.x) {
        maximum = fmaxf(maximum, scores[key]);
    }
    maximum = reduce_block<Max>(maximum, maxima);
    float sum = 0.0f;
    for (unsigned int key = threadIdx.x; key < keys; key += blockDim.x) {
        sum += scores[key] = __expf(scores[key] - maximum);
    }
    const float share = 1.0f / reduce_block<Sum>(sum, sums);
    for (unsigned int key = threadIdx.x; key < keys; key += blockDim.x) {
        scores[key] *= share;
    }
}

// out[head][query][i] ← Σ weight[key]·v[key][i], a thread for each.
template <typename T, bool CAUSAL>
static __device__ __forceinline__ void naive_values(const float* weights, const T* v, T* out, size_t n, unsigned int seq,
                                                    unsigned int head_dim, unsigned int group) {
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    const size_t row = index / head_dim;
    const unsigned int keys = CAUSAL ? row % seq + 1 : seq;
    weights += row * seq;
    v += row / seq / group * seq * head_dim + index % head_dim;
    float sum = 0.0f;
    for (unsigned int key = 0; key < keys; ++key) {
        sum += weights[key] * widen(v[static_cast<size_t>(key) * head_dim]);
    }
    out[index] = narrow<T>(sum);
}

// ---- tiled: nothing in memory but what goes in and out

static constexpr unsigned int TILE = 64;
// A block is a square of threads, each with FEW queries and FEW keys of the scores.
static constexpr unsigned int SIDE = 16;
static constexpr unsigned int FEW = TILE / SIDE;
static constexpr unsigned int TILED_THREADS = SIDE * SIDE;

// A tile of rows of WIDTH elements in shared memory; the padding keeps rows in different banks.
template <unsigned int WIDTH> struct Rows {
    static constexpr unsigned int STRIDE = WIDTH + 4;
    float values[TILE][STRIDE];

    // Four elements of a row.
    __device__ __forceinline__ float4 four(unsigned int row, unsigned int column) const {
        return *reinterpret_cast<const float4*>(&values[row][column]);
    }

    // Takes over rows of head_dim ≤ WIDTH elements from `first` on; what does not exist is zero.
    template <typename T> __device__ __forceinline__ void copy(const T* from, unsigned int first, unsigned int seq, unsigned int head_dim) {
        constexpr unsigned int LENGTH = Pack<T>::LENGTH;
        if (head_dim == WIDTH) {
            for (unsigned int i = threadIdx.x; i < TILE * (WIDTH / LENGTH); i += TILED_THREADS) {
                const unsigned int row = i / (WIDTH / LENGTH);
                const unsigned int column = i % (WIDTH / LENGTH) * LENGTH;
                Pack<T> pack = {};
                if (first + row < seq) {
                    pack = load_pack(from + static_cast<size_t>(first + row) * WIDTH + column);
                }
#pragma unroll
                for (unsigned int j = 0; j < LENGTH; ++j) {
                    values[row][column + j] = widen(pack.values[j]);
                }
            }
            return;
        }
        for (unsigned int i = threadIdx.x; i < TILE * WIDTH; i += TILED_THREADS) {
            const unsigned int row = i / WIDTH;
            const unsigned int column = i % WIDTH;
            const bool is_there = first + row < seq && column < head_dim;
            values[row][column] = is_there ? widen(from[static_cast<size_t>(first + row) * head_dim + column]) : 0.0f;
        }
    }
};

// Keys and values take turns in one tile.
template <unsigned int WIDTH> struct TiledMemory {
    Rows<WIDTH> q;
    Rows<WIDTH> other;
    Rows<TILE> weights;
};

static __device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

static __device__ __forceinline__ float element(float4 a, unsigned int i) { return i == 0 ? a.x : i == 1 ? a.y : i == 2 ? a.z : a.w; }

// Thread (x, y) of a block has queries y · FEW to y · FEW + FEW − 1, and of them the keys x, x + SIDE, x + 2 · SIDE ... of the
// scores, and elements x · 4 to x · 4 + 3 of every 4 · SIDE of the result. The SIDE threads of a query are half a warp.
template <typename T, unsigned int WIDTH, bool CAUSAL>
static __device__ __forceinline__ void attend_tiled(const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int head_dim,
                                                    unsigned int group) {
    extern __shared__ float4 raw[];
    TiledMemory<WIDTH>& memory = *reinterpret_cast<TiledMemory<WIDTH>*>(raw);
    const unsigned int x = threadIdx.x % SIDE;
    const unsigned int first_row = threadIdx.x / SIDE * FEW;
    const unsigned int blocks = (seq + TILE - 1) / TILE;
    const unsigned int head = blockIdx.x / blocks;
    // With a causal mask the last queries have most to do: they go first.
    const unsigned int block = CAUSAL ? blocks - 1 - blockIdx.x % blocks : blockIdx.x % blocks;
    const size_t matrix = static_cast<size_t>(seq) * head_dim;
    k += head / group * matrix;
    v += head / group * matrix;
    const unsigned int end = CAUSAL ? min(seq, (block + 1) * TILE) : seq;
    const float scale = 1.44269504f * rsqrtf(static_cast<float>(head_dim)); // log₂ e: powers are of two

    memory.q.copy(q + head * matrix, block * TILE, seq, head_dim);
    float maximum[FEW];
    float total[FEW] = {};
    float sums[FEW][WIDTH / SIDE] = {};
#pragma unroll
    for (unsigned int i = 0; i < FEW; ++i) {
        maximum[i] = -infinity();
    }
    for (unsigned int first_key = 0; first_key < end; first_key += TILE) {
        __syncthreads(); // the values of the last round were used
        memory.other.copy(k, first_key, seq, head_dim);
        __syncthreads();
        float scores[FEW][FEW] = {};
#pragma unroll 4
        for (unsigned int column = 0; column < WIDTH; column += 4) {
            float4 keys[FEW];
#pragma unroll
            for (unsigned int j = 0; j < FEW; ++j) {
                keys[j] = memory.other.four(x + j * SIDE, column);
            }
#pragma unroll
            for (unsigned int i = 0; i < FEW; ++i) {
                const float4 query = memory.q.four(first_row + i, column);
#pragma unroll
                for (unsigned int j = 0; j < FEW; ++j) {
                    scores[i][j] += dot(query, keys[j]);
                }
            }
        }
        __syncthreads();
        memory.other.copy(v, first_key, seq, head_dim);
#pragma unroll
        for (unsigned int i = 0; i < FEW; ++i) {
            float larger = maximum[i];
#pragma unroll
            for (unsigned int j = 0; j < FEW; ++j) {
                const unsigned int key = first_key + x + j * SIDE;
                const bool is_seen = key < seq && (!CAUSAL || key <= block * TILE + first_row + i);
                scores[i][j] = is_seen ? scores[i][j] * scale : -infinity();
                larger = fmaxf(larger, scores[i][j]);
            }
#pragma unroll
            for (unsigned int distance = SIDE / 2; distance > 0; distance /= 2) {
                larger = fmaxf(larger, __shfl_xor_sync(ALL_LANES, larger, distance));
            }
            const float shrink = exp2f(maximum[i] - larger);
            maximum[i] = larger;
            total[i] *= shrink;
#pragma unroll
            for (unsigned int j = 0; j < FEW; ++j) {
                const float weight = exp2f(scores[i][j] - larger);
                total[i] += weight;
                memory.weights.values[first_row + i][x + j * SIDE] = weight;
            }
#pragma unroll
            for (unsigned int j = 0; j < WIDTH / SIDE; ++j) {
                sums[i][j] *= shrink;
            }
        }
        __syncthreads();
#pragma unroll 2
        for (unsigned int key = 0; key < TILE; key += 4) {
            float4 weights[FEW];
#pragma unroll
            for (unsigned int i = 0; i < FEW; ++i) {
                weights[i] = memory.weights.four(first_row + i, key);
            }
#pragma unroll
            for (unsigned int part = 0; part < 4; ++part) {
#pragma unroll
                for (unsigned int c = 0; c < WIDTH / SIDE / 4; ++c) {
                    const float4 value = memory.other.four(key + part, c * 4 * SIDE + x * 4);
#pragma unroll
                    for (unsigned int i = 0; i < FEW; ++i) {
                        const float weight = element(weights[i], part);
                        sums[i][c * 4] += weight * value.x;
                        sums[i][c * 4 + 1] += weight * value.y;
                        sums[i][c * 4 + 2] += weight * value.z;
                        sums[i][c * 4 + 3] += weight * value.w;
                    }
                }
            }
        }
    }
#pragma unroll
    for (unsigned int i = 0; i < FEW; ++i) {
#pragma unroll
        for (unsigned int distance = SIDE / 2; distance > 0; distance /= 2) {
            total[i] += __shfl_xor_sync(ALL_LANES, total[i], distance);
        }
        const unsigned int query = block * TILE + first_row + i;
#pragma unroll
        for (unsigned int j = 0; j < WIDTH / SIDE; ++j) {
            const unsigned int column = j / 4 * 4 * SIDE + x * 4 + j % 4;
            if (query < seq && column < head_dim) {
                out[head * matrix + static_cast<size_t>(query) * head_dim + column] = narrow<T>(sums[i][j] / total[i]);
            }
        }
    }
}

// ---- entry points

#define NAIVE(T, suffix, prefix, CAUSAL)                                                                               \
    extern "C" __global__ void prefix##_scores_##suffix(const T* q, const T* k, float* scores, size_t n,               \
                                                        unsigned int seq, unsigned int head_dim, unsigned int group) { \
        naive_scores<T, CAUSAL>(q, k, scores, n, seq, head_dim, group);                                                \
    }                                                                                                                  \
    extern "C" __global__ void prefix##_values_##suffix(const float* weights, const T* v, T* out, size_t n,            \
                                                        unsigned int seq, unsigned int head_dim, unsigned int group) { \
        naive_values<T, CAUSAL>(weights, v, out, n, seq, head_dim, group);                                             \
    }
#define NAIVE_BOTH(T, suffix) NAIVE(T, suffix, attention_naive, false) NAIVE(T, suffix, attention_causal_naive, true)
FOR_FLOATS(NAIVE_BOTH)

extern "C" __global__ void attention_naive_softmax(float* scores, unsigned int seq) { naive_softmax<false>(scores, seq); }
extern "C" __global__ void attention_causal_naive_softmax(float* scores, unsigned int seq) { naive_softmax<true>(scores, seq); }

#define TILED(T, suffix, prefix, WIDTH, CAUSAL)                                                                        \
    extern "C" __global__ void __launch_bounds__(TILED_THREADS) prefix##_##WIDTH##_##suffix(                           \
        const T* q, const T* k, const T* v, T* out, unsigned int seq, unsigned int head_dim, unsigned int group) {     \
        attend_tiled<T, WIDTH, CAUSAL>(q, k, v, out, seq, head_dim, group);                                            \
    }
#define TILED_BOTH(T, suffix, WIDTH)                                                                                   \
    TILED(T, suffix, attention_tiled, WIDTH, false) TILED(T, suffix, attention_causal_tiled, WIDTH, true)
#define TILED_ALL(T, suffix) TILED_BOTH(T, suffix, 64) TILED_BOTH(T, suffix, 128)
FOR_FLOATS(TILED_ALL)
