// Attention of one query per head against a cache of keys and values, bound by memory: every key and every value is read
// once, for all the query heads that share it.
//
// The keys are cut into splits, so that there are enough blocks to keep memory busy even when heads are few. A block leaves,
// for its split and each of its heads, a row of partial results: the weighted sum of values, the largest score and the sum of
// weights under it. A second kernel joins the splits.
//
// q and out are heads × head_dim, k and v (heads / group) × seq × head_dim, at addresses that are multiples of 16.

#include "copies.cuh"

static constexpr unsigned int DECODE_WARPS = 4;
static constexpr unsigned int DECODE_THREADS = DECODE_WARPS * WARP;
// Elements of a head that one lane takes care of.
static constexpr unsigned int ELEMENTS = 16;
// Steps that are on their way from memory at a time.
static constexpr unsigned int STAGES = 4;
// Bytes that a lane copies in one step, keys and values together.
static constexpr unsigned int STEP_BYTES = 128;
// Columns of a row of partial results behind those of the head: maximum and sum.
static constexpr unsigned int EXTRA = 2;
// The maximum of no scores: finite, so that the difference of two of them is 0.
static constexpr float LOWEST = -3.402823466e38f;

// Scores are scaled by 1 / √head_dim, and by log₂ e, as powers of two are cheaper than those of e.
static __device__ __forceinline__ float scale_of(unsigned int head_dim) {
    return 1.44269504f * rsqrtf(static_cast<float>(head_dim));
}

// Joins what the warps of a block know of one head, and writes a row of partial results. `sums` has a row of head_dim for
// each warp, `maxima` and `totals` a value for each.
static __device__ __forceinline__ void join_warps(const float* sums, const float* maxima, const float* totals, float* row,
                                                  unsigned int head_dim) {
    float maximum = LOWEST;
    for (unsigned int warp = 0; warp < DECODE_WARPS; ++warp) {
        maximum = fmaxf(maximum, maxima[warp]);
    }
    float weights[DECODE_WARPS];
    float total = 0.0f;
    for (unsigned int warp = 0; warp < DECODE_WARPS; ++warp) {
        weights[warp] = power_of_two(maxima[warp] - maximum);
        total += totals[warp] * weights[warp];
    }
    for (unsigned int i = threadIdx.x; i < head_dim; i += DECODE_THREADS) {
        float sum = 0.0f;
        for (unsigned int warp = 0; warp < DECODE_WARPS; ++warp) {
            sum += sums[warp * head_dim + i] * weights[warp];
        }
        row[i] = sum;
    }
    if (threadIdx.x == 0) {
        row[head_dim] = maximum;
        row[head_dim + 1] = total;
    }
}

// ---- heads of 64 and 128 elements

// What a lane knows: its elements of HEADS queries, and their weighted sums of the keys that it has seen.
template <unsigned int HEADS> struct Lane {
    float q[HEADS][ELEMENTS];
    float sums[HEADS][ELEMENTS];
    float maximum[HEADS];
    float total[HEADS];
};

// The lane's elements of one row, from its packs in shared memory.
template <typename T> static __device__ __forceinline__ void widen_row(const uint4* ring, float (&row)[ELEMENTS]) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
#pragma unroll
    for (unsigned int p = 0; p < ELEMENTS / LENGTH; ++p) {
        const uint4 bits = ring[p * DECODE_THREADS];
        const Pack<T>& pack = *reinterpret_cast<const Pack<T>*>(&bits);
#pragma unroll
        for (unsigned int i = 0; i < LENGTH; ++i) {
            row[p * LENGTH + i] = widen(pack.values[i]);
        }
    }
}

// One step: KEYS keys, the first of them `key`, of which those from `end` on do not exist. LANES lanes share a key.
template <typename T, unsigned int LANES, unsigned int KEYS, unsigned int HEADS>
static __device__ __forceinline__ void decode_step(Lane<HEADS>& lane, const uint4* ring, unsigned int key, unsigned int end, float scale) {
    constexpr unsigned int PACKS = ELEMENTS / Pack<T>::LENGTH;
    constexpr unsigned int SLOTS = WARP / LANES;
    float scores[KEYS][HEADS];
#pragma unroll
    for (unsigned int j = 0; j < KEYS; ++j) {
        float row[ELEMENTS];
        widen_row<T>(ring + j * PACKS * DECODE_THREADS, row);
#pragma unroll
        for (unsigned int head = 0; head < HEADS; ++head) {
            float score = 0.0f;
#pragma unroll
            for (unsigned int i = 0; i < ELEMENTS; ++i) {
                score += lane.q[head][i] * row[i];
            }
#pragma unroll
            for (unsigned int distance = LANES / 2; distance > 0; distance /= 2) {
                score += __shfl_xor_sync(ALL_LANES, score, distance);
            }
            scores[j][head] = key + j * SLOTS < end ? score * scale : -infinity();
        }
    }
    float maximum[HEADS];
    bool grew = false;
#pragma unroll
    for (unsigned int head = 0; head < HEADS; ++head) {
        maximum[head] = lane.maximum[head];
#pragma unroll
        for (unsigned int j = 0; j < KEYS; ++j) {
            maximum[head] = fmaxf(maximum[head], scores[j][head]);
        }
        grew |= maximum[head] > lane.maximum[head];
    }
    // A maximum grows ever more seldom.
    if (__any_sync(ALL_LANES, grew)) {
#pragma unroll
        for (unsigned int head = 0; head < HEADS; ++head) {
            const float shrink = power_of_two(lane.maximum[head] - maximum[head]);
            lane.maximum[head] = maximum[head];
            lane.total[head] *= shrink;
#pragma unroll
            for (unsigned int i = 0; i < ELEMENTS; ++i) {
                lane.sums[head][i] *= shrink;
            }
        }
    }
#pragma unroll
    for (unsigned int j = 0; j < KEYS; ++j) {
        float row[ELEMENTS];
        widen_row<T>(ring + (KEYS + j) * PACKS * DECODE_THREADS, row);
#pragma unroll
        for (unsigned int head = 0; head < HEADS; ++head) {
            const float weight = power_of_two(scores[j][head] - lane.maximum[head]);
            lane.total[head] += weight;
#pragma unroll
            for (unsigned int i = 0; i < ELEMENTS; ++i) {
                lane.sums[head][i] += weight * row[i];
            }
        }
    }
}

// Block (x, y): HEADS query heads that share keys, split y of the keys. Lanes read back only what they copied themselves, so
// that nobody has to wait for others until the end.
template <typename T, unsigned int HEAD_DIM, unsigned int HEADS>
static __device__ __forceinline__ void decode_split(const T* q, const T* k, const T* v, float* partial, unsigned int seq, unsigned int group,
                                                    unsigned int keys_of_split) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
    constexpr unsigned int PACKS = ELEMENTS / LENGTH;
    constexpr unsigned int LANES = HEAD_DIM / ELEMENTS;
    constexpr unsigned int SLOTS = WARP / LANES;
    // Keys of a lane in one step.
    constexpr unsigned int KEYS = STEP_BYTES / (2 * ELEMENTS * sizeof(T));
    constexpr unsigned int KEYS_OF_BLOCK = KEYS * SLOTS * DECODE_WARPS;
    constexpr unsigned int STEP_PACKS = STEP_BYTES / 16;
    extern __shared__ uint4 ring[];
    __shared__ float sums[HEADS][DECODE_WARPS][HEAD_DIM];
    __shared__ float maxima[HEADS][DECODE_WARPS];
    __shared__ float totals[HEADS][DECODE_WARPS];

    const unsigned int chunks = (group + HEADS - 1) / HEADS;
    const unsigned int first_head = blockIdx.x / chunks * group + blockIdx.x % chunks * HEADS;
    const unsigned int heads = min(HEADS, group - blockIdx.x % chunks * HEADS);
    const size_t matrix = static_cast<size_t>(seq) * HEAD_DIM;
    k += blockIdx.x / chunks * matrix;
    v += blockIdx.x / chunks * matrix;
    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int slot = threadIdx.x % WARP / LANES;
    const unsigned int part = threadIdx.x % LANES;

    Lane<HEADS> lane;
#pragma unroll
    for (unsigned int head = 0; head < HEADS; ++head) {
        lane.maximum[head] = LOWEST;
        lane.total[head] = 0.0f;
#pragma unroll
        for (unsigned int i = 0; i < ELEMENTS; ++i) {
            const unsigned int element = (i / LENGTH * LANES + part) * LENGTH + i % LENGTH;
            lane.q[head][i] = head < heads ? widen(q[static_cast<size_t>(first_head + head) * HEAD_DIM + element]) : 0.0f;
            lane.sums[head][i] = 0.0f;
        }
    }

    const unsigned int begin = blockIdx.y * keys_of_split;
    const unsigned int end = min(seq, begin + keys_of_split);
    const unsigned int own = begin + warp * KEYS * SLOTS + slot;
    const unsigned int steps = begin < end ? (end - begin + KEYS_OF_BLOCK - 1) / KEYS_OF_BLOCK : 0;
    uint4* const mine = ring + threadIdx.x;
    const auto copy = [&](unsigned int step) {
        uint4* const to = mine + step % STAGES * STEP_PACKS * DECODE_THREADS;
#pragma unroll
        for (unsigned int i = 0; i < STEP_PACKS; ++i) {
            const unsigned int key = own + step * KEYS_OF_BLOCK + i / PACKS % KEYS * SLOTS;
            const bool is_there = step < steps && key < end;
            const T* const from = i < STEP_PACKS / 2 ? k : v;
            const size_t offset = static_cast<size_t>(is_there ? key : 0) * HEAD_DIM + (i % PACKS * LANES + part) * LENGTH;
            copy_later(shared_address(to + i * DECODE_THREADS), from + offset, is_there);
        }
        end_of_copies();
    };
#pragma unroll
    for (unsigned int step = 0; step < STAGES - 1; ++step) {
        copy(step);
    }
    const float scale = scale_of(HEAD_DIM);
    for (unsigned int step = 0; step < steps; ++step) {
        copy(step + STAGES - 1);
        wait_for_copies<STAGES - 1>();
        const uint4* const from = mine + step % STAGES * STEP_PACKS * DECODE_THREADS;
        decode_step<T, LANES, KEYS, HEADS>(lane, from, own + step * KEYS_OF_BLOCK, end, scale);
    }

    // The slots of a warp are joined, then the warps of the block.
#pragma unroll
    for (unsigned int head = 0; head < HEADS; ++head) {
        float maximum = lane.maximum[head];
#pragma unroll
        for (unsigned int distance = LANES; distance < WARP; distance *= 2) {
            maximum = fmaxf(maximum, __shfl_xor_sync(ALL_LANES, maximum, distance));
        }
        const float shrink = power_of_two(lane.maximum[head] - maximum);
        const auto joined = [&](float value) {
            value *= shrink;
#pragma unroll
            for (unsigned int distance = LANES; distance < WARP; distance *= 2) {
                value += __shfl_xor_sync(ALL_LANES, value, distance);
            }
            return value;
        };
        const float total = joined(lane.total[head]);
#pragma unroll
        for (unsigned int i = 0; i < ELEMENTS; ++i) {
            const float sum = joined(lane.sums[head][i]);
            if (slot == 0) {
                sums[head][warp][(i / LENGTH * LANES + part) * LENGTH + i % LENGTH] = sum;
            }
        }
        if (threadIdx.x % WARP == 0) {
            maxima[head][warp] = maximum;
            totals[head][warp] = total;
        }
    }
    __syncthreads();
    for (unsigned int head = 0; head < heads; ++head) {
        float* const row = partial + (static_cast<size_t>(first_head + head) * gridDim.y + blockIdx.y) * (HEAD_DIM + EXTRA);
        join_warps(&sums[head][0][0], maxima[head], totals[head], row, HEAD_DIM);
    }
}

#define DECODE(T, suffix, HEAD_DIM, HEADS)                                                                             \
    extern "C" __global__ void __launch_bounds__(DECODE_THREADS) attention_decode_##HEAD_DIM##x##HEADS##_##suffix(     \
        const T* q, const T* k, const T* v, float* partial, unsigned int seq, unsigned int group,                      \
        unsigned int keys_of_split) {                                                                                  \
        decode_split<T, HEAD_DIM, HEADS>(q, k, v, partial, seq, group, keys_of_split);                                 \
    }
#define DECODE_ALL(T, suffix)                                                                                          \
    DECODE(T, suffix, 64, 1) DECODE(T, suffix, 64, 4) DECODE(T, suffix, 128, 1) DECODE(T, suffix, 128, 4)
FOR_FLOATS(DECODE_ALL)

// ---- heads of any length up to LONGEST

static constexpr unsigned int LONGEST = 256;

// Block (x, y): query head x, split y of the keys. Every warp takes a key at a time, its lanes the elements.
template <typename T>
static __device__ __forceinline__ void decode_any(const T* q, const T* k, const T* v, float* partial, unsigned int seq, unsigned int group,
                                                  unsigned int head_dim, unsigned int keys_of_split) {
    __shared__ float sums[DECODE_WARPS * LONGEST];
    __shared__ float maxima[DECODE_WARPS];
    __shared__ float totals[DECODE_WARPS];
    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int lane = threadIdx.x % WARP;
    const size_t matrix = static_cast<size_t>(seq) * head_dim;
    k += blockIdx.x / group * matrix;
    v += blockIdx.x / group * matrix;
    q += static_cast<size_t>(blockIdx.x) * head_dim;

    float query[LONGEST / WARP];
    float sum[LONGEST / WARP] = {};
#pragma unroll
    for (unsigned int i = 0; i < LONGEST / WARP; ++i) {
        query[i] = i * WARP + lane < head_dim ? widen(q[i * WARP + lane]) : 0.0f;
    }
    const unsigned int begin = blockIdx.y * keys_of_split;
    const unsigned int end = min(seq, begin + keys_of_split);
    const float scale = scale_of(head_dim);
    float maximum = LOWEST;
    float total = 0.0f;
    for (unsigned int key = begin + warp; key < end; key += DECODE_WARPS) {
        const size_t row = static_cast<size_t>(key) * head_dim + lane;
        float score = 0.0f;
#pragma unroll
        for (unsigned int i = 0; i < LONGEST / WARP; ++i) {
            score += i * WARP + lane < head_dim ? query[i] * widen(k[row + i * WARP]) : 0.0f;
        }
        score = reduce_warp<Sum>(score) * scale;
        const float larger = fmaxf(maximum, score);
        const float shrink = power_of_two(maximum - larger);
        const float weight = power_of_two(score - larger);
        maximum = larger;
        total = total * shrink + weight;
#pragma unroll
        for (unsigned int i = 0; i < LONGEST / WARP; ++i) {
            sum[i] = sum[i] * shrink + (i * WARP + lane < head_dim ? weight * widen(v[row + i * WARP]) : 0.0f);
        }
    }
#pragma unroll
    for (unsigned int i = 0; i < LONGEST / WARP; ++i) {
        if (i * WARP + lane < head_dim) {
            sums[warp * head_dim + i * WARP + lane] = sum[i];
        }
    }
    if (lane == 0) {
        maxima[warp] = maximum;
        totals[warp] = total;
    }
    __syncthreads();
    float* const row = partial + (static_cast<size_t>(blockIdx.x) * gridDim.y + blockIdx.y) * (head_dim + EXTRA);
    join_warps(sums, maxima, totals, row, head_dim);
}

// out ← Σ weight·sum / Σ weight·total over the splits of head x, with weights under the largest of all scores.
template <typename T>
static __device__ __forceinline__ void decode_join(const float* partial, T* out, unsigned int head_dim, unsigned int splits) {
    partial += static_cast<size_t>(blockIdx.x) * splits * (head_dim + EXTRA);
    const auto row = [&](unsigned int split) { return partial + static_cast<size_t>(split) * (head_dim + EXTRA); };
    float maximum = LOWEST;
    for (unsigned int split = 0; split < splits; ++split) {
        maximum = fmaxf(maximum, row(split)[head_dim]);
    }
    for (unsigned int i = threadIdx.x; i < head_dim; i += blockDim.x) {
        float sum = 0.0f;
        float total = 0.0f;
        for (unsigned int split = 0; split < splits; ++split) {
            const float weight = power_of_two(row(split)[head_dim] - maximum);
            sum += weight * row(split)[i];
            total += weight * row(split)[head_dim + 1];
        }
        out[static_cast<size_t>(blockIdx.x) * head_dim + i] = narrow<T>(sum / total);
    }
}

#define DECODE_ANY(T, suffix)                                                                                          \
    extern "C" __global__ void __launch_bounds__(DECODE_THREADS) attention_decode_any_##suffix(                        \
        const T* q, const T* k, const T* v, float* partial, unsigned int seq, unsigned int group,                      \
        unsigned int head_dim, unsigned int keys_of_split) {                                                           \
        decode_any(q, k, v, partial, seq, group, head_dim, keys_of_split);                                             \
    }                                                                                                                  \
    extern "C" __global__ void attention_decode_join_##suffix(const float* partial, T* out, unsigned int head_dim,     \
                                                              unsigned int splits) {                                   \
        decode_join(partial, out, head_dim, splits);                                                                   \
    }
FOR_FLOATS(DECODE_ANY)
