// Losses: all of the data becomes one number, by one launch. Every block hands its sum in, and the block that is the last to
// do so adds them up, in the order of the blocks' numbers and not of time: the result has the same bits in every call.

#include "common.cuh"

static constexpr unsigned int MOST_BLOCKS = 8192;

// Vectors of 16 bytes of each array that a thread asks for before it looks at the first of them.
static constexpr unsigned int PACKS = 4;

// What the blocks of the running grid have handed in: on one stream there is one grid at a time.
static __device__ float sums_of_blocks[MOST_BLOCKS];
static __device__ unsigned int blocks_done;

// out ← factor · the sum over all blocks of `sum`, which thread 0 of each has. At most MOST_BLOCKS of whole warps.
static __device__ __forceinline__ void finish(float sum, float factor, float* out) {
    __shared__ bool is_last;
    __shared__ float partial[MOST_WARPS];
    if (threadIdx.x == 0) {
        sums_of_blocks[blockIdx.x] = sum;
        __threadfence();
        // It counts up to the last block and is back at 0 after it, for the next grid.
        is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) {
        return;
    }
    __threadfence();
    float total = 0.0f;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        total += __ldcg(sums_of_blocks + i);
    }
    total = reduce_block<Sum>(total, partial);
    if (threadIdx.x == 0) {
        *out = factor * total;
    }
}

// ---- mean squared error

// sums[i] ← sums[i] + (x[i] − y[i])²
template <typename T>
static __device__ __forceinline__ void add_squares(const Pack<T>& x, const Pack<T>& y, float (&sums)[Pack<T>::LENGTH]) {
#pragma unroll
    for (unsigned int i = 0; i < Pack<T>::LENGTH; ++i) {
        const float difference = widen(x.values[i]) - widen(y.values[i]);
        sums[i] += difference * difference;
    }
}

// out ← mean((x − y)²)
template <typename T>
static __device__ __forceinline__ void mse(const T* x, const T* y, float* out, size_t n) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
    __shared__ float partial[MOST_WARPS];
    const size_t packs = is_aligned(x) && is_aligned(y) ? n / LENGTH : 0;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    float sums[LENGTH] = {};
    size_t at = first;
    for (; at + (PACKS - 1) * step < packs; at += PACKS * step) {
        Pack<T> left[PACKS];
        Pack<T> right[PACKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            left[p] = stream_pack(x + (at + p * step) * LENGTH);
            right[p] = stream_pack(y + (at + p * step) * LENGTH);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            add_squares(left[p], right[p], sums);
        }
    }
    for (; at < packs; at += step) {
        add_squares(stream_pack(x + at * LENGTH), stream_pack(y + at * LENGTH), sums);
    }
    float sum = 0.0f;
    for (size_t i = packs * LENGTH + first; i < n; i += step) {
        const float difference = widen(x[i]) - widen(y[i]);
        sum += difference * difference;
    }
#pragma unroll
    for (unsigned int i = 0; i < LENGTH; ++i) {
        sum += sums[i];
    }
    finish(reduce_block<Sum>(sum, partial), 1.0f / static_cast<float>(n), out);
}

#define MSE(T, suffix)                                                                                                 \
    extern "C" __global__ void mse_##suffix(const T* x, const T* y, float* out, size_t n) { mse(x, y, out, n); }
FOR_FLOATS(MSE)

// ---- cross entropy

// Σ exp(x) of the x so far, as their maximum and Σ exp(x − maximum), so that no number is read twice.
struct Exponentials {
    float max = -infinity();
    float sum = 0.0f;

    // Adds what is not below any other.
    template <unsigned int COUNT> __device__ __forceinline__ void add(const float (&values)[COUNT]) {
        float higher = max;
#pragma unroll
        for (unsigned int i = 0; i < COUNT; ++i) {
            higher = fmaxf(higher, values[i]);
        }
        // Nothing but −∞ adds nothing, and −∞ − (−∞) is no number.
        const float base = higher == -infinity() ? 0.0f : higher;
        sum *= __expf(max - base);
#pragma unroll
        for (unsigned int i = 0; i < COUNT; ++i) {
            sum += __expf(values[i] - base);
        }
        max = higher;
    }
};

// ln Σ exp(row), by all threads of a block. A row may begin anywhere: what is before its first whole pack and after its
// last one are fewer elements than threads.
template <typename T>
static __device__ __forceinline__ float log_sum_exp(const T* row, size_t classes, float* maxima, float* sums) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
    const size_t before = (16 - reinterpret_cast<size_t>(row) % 16) % 16 / sizeof(T);
    const size_t head = before < classes ? before : classes;
    const size_t packs = (classes - head) / LENGTH;
    Exponentials mine;
    for (size_t first = threadIdx.x; first < packs; first += PACKS * blockDim.x) {
        Pack<T> loaded[PACKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            const size_t at = first + p * blockDim.x;
            if (at < packs) {
                loaded[p] = stream_pack(row + head + at * LENGTH);
            }
        }
        float values[PACKS * LENGTH];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            const bool is_there = first + p * blockDim.x < packs;
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                values[p * LENGTH + i] = is_there ? widen(loaded[p].values[i]) : -infinity();
            }
        }
        mine.add(values);
    }
    if (threadIdx.x < classes - packs * LENGTH) {
        const size_t at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * LENGTH;
        const float values[1] = {widen(row[at])};
        mine.add(values);
    }
    const float max = reduce_block<Max>(mine.max, maxima);
    const float base = max == -infinity() ? 0.0f : max;
    return max + logf(reduce_block<Sum>(mine.sum * __expf(mine.max - base), sums));
}

// out ← mean over rows of ln Σ exp(row) − row[target], a block for a row at a time.
template <typename T>
static __device__ __forceinline__ void cross_entropy(
    const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {
    __shared__ float maxima[MOST_WARPS];
    __shared__ float sums[MOST_WARPS];
    float sum = 0.0f;
    for (size_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* const row = logits + r * classes;
        float logit = 0.0f;
        if (threadIdx.x == 0) {
            const unsigned int target = targets[r];
            logit = target < classes ? widen(row[target]) : nanf("");
        }
        sum += log_sum_exp(row, classes, maxima, sums) - logit;
    }
    finish(sum, 1.0f / static_cast<float>(rows), out);
}

#define CROSS_ENTROPY(T, suffix)                                                                                       \
    extern "C" __global__ void cross_entropy_##suffix(                                                                 \
        const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {                       \
        cross_entropy(logits, targets, out, rows, classes);                                                            \
    }
FOR_FLOATS(CROSS_ENTROPY)

// ---- cross entropy in two steps

// out ← logits − ln Σ exp(logits), a block for each row.
template <typename T>
static __device__ __forceinline__ void log_softmax(const T* logits, float* out, size_t classes) {
    __shared__ float maxima[MOST_WARPS];
    __shared__ float sums[MOST_WARPS];
    logits += blockIdx.x * classes;
    out += blockIdx.x * classes;
    const float shift = log_sum_exp(logits, classes, maxima, sums);
    for (size_t i = threadIdx.x; i < classes; i += blockDim.x) {
        out[i] = widen(logits[i]) - shift;
    }
}

#define LOG_SOFTMAX(T, suffix)                                                                                         \
    extern "C" __global__ void log_softmax_##suffix(const T* logits, float* out, size_t classes) {                     \
        log_softmax(logits, out, classes);                                                                             \
    }
FOR_FLOATS(LOG_SOFTMAX)

// out ← −mean over rows of log_probabilities[row, target], a thread for a row at a time.
extern "C" __global__ void mean_of_targets(
    const float* log_probabilities, const unsigned int* targets, float* out, size_t rows, size_t classes) {
    __shared__ float partial[MOST_WARPS];
    float sum = 0.0f;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t r = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; r < rows; r += step) {
        const unsigned int target = targets[r];
        sum += target < classes ? log_probabilities[r * classes + target] : nanf("");
    }
    finish(reduce_block<Sum>(sum, partial), -1.0f / static_cast<float>(rows), out);
}
