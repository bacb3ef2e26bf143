// Losses: all of the data becomes one number.

#include "meeting.cuh"
#include "tally.cuh"

// Vectors of 16 bytes of each array that a thread asks for before it looks at the first of them.
static constexpr unsigned int PACKS = 2;
// The same in a row of logits, by the threads of a block, and by those of a warp.
static constexpr unsigned int ROW_PACKS = 2;
static constexpr unsigned int WARP_PACKS = 4;

// ---- mean squared error

// Sums of a thread, so that an addition does not wait for the last one. With more of them a multiprocessor would have registers
// for fewer threads.
static constexpr unsigned int SUMS = 4;

// Adds all (x[i] − y[i])² to the sums in turn.
template <typename T>
static __device__ __forceinline__ void add_squares(const Pack<T>& x, const Pack<T>& y, float (&sums)[SUMS]) {
#pragma unroll
    for (unsigned int i = 0; i < Pack<T>::LENGTH; ++i) {
        const float difference = widen(x.values[i]) - widen(y.values[i]);
        sums[i % SUMS] += difference * difference;
    }
}

// out ← mean((x − y)²)
template <typename T>
static __device__ __forceinline__ void mse(const T* x, const T* y, float* out, size_t n) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
    __shared__ float partial[MOST_WARPS];
    const Meeting meeting;
    const size_t packs = is_aligned(x) && is_aligned(y) ? n / LENGTH : 0;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    float sums[SUMS] = {};
    size_t at = first;
    for (; at + (PACKS - 1) * step < packs; at += PACKS * step) {
        Pack<T> left[PACKS];
        Pack<T> right[PACKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            left[p] = load_pack(x + (at + p * step) * LENGTH);
            right[p] = load_pack(y + (at + p * step) * LENGTH);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            add_squares(left[p], right[p], sums);
        }
    }
    for (; at < packs; at += step) {
        add_squares(load_pack(x + at * LENGTH), load_pack(y + at * LENGTH), sums);
    }
    float sum = 0.0f;
    for (size_t i = packs * LENGTH + first; i < n; i += step) {
        const float difference = widen(x[i]) - widen(y[i]);
        sum += difference * difference;
    }
#pragma unroll
    for (unsigned int i = 0; i < SUMS; ++i) {
        sum += sums[i];
    }
    meeting.add_up(reduce_block<Sum>(sum, partial), 1.0f / static_cast<float>(n), out);
}

#define MSE(T, suffix)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        mse_##suffix(const T* x, const T* y, float* out, size_t n) {                                                   \
        mse(x, y, out, n);                                                                                             \
    }
FOR_FLOATS(MSE)

// ---- cross entropy

static constexpr float LOG2_E = 1.4426950f;

static __device__ __forceinline__ float largest(const Pack<float>& pack) {
    return fmaxf(fmaxf(pack.values[0], pack.values[1]), fmaxf(pack.values[2], pack.values[3]));
}

// Numbers of 16 bits are compared in pairs, before they are widened.
template <typename Pair, typename T> static __device__ __forceinline__ float largest_of_pairs(const Pack<T>& pack) {
    const Pair* const pairs = reinterpret_cast<const Pair*>(pack.values);
    const Pair pair = __hmax2(__hmax2(pairs[0], pairs[1]), __hmax2(pairs[2], pairs[3]));
    return fmaxf(widen(pair.x), widen(pair.y));
}

static __device__ __forceinline__ float largest(const Pack<__half>& pack) { return largest_of_pairs<__half2>(pack); }

static __device__ __forceinline__ float largest(const Pack<__nv_bfloat16>& pack) {
    return largest_of_pairs<__nv_bfloat162>(pack);
}

// A maximum, or the lowest number where there is none yet, so that differences from it are numbers.
static __device__ __forceinline__ float finite(float max) { return fmaxf(max, -3.40282347e38f); }

// exp(x − max) of the x below a maximum, by one multiplication with addition and one power of two.
class Powers {
public:
    // The product is rounded, which is worth no more than the last digit of the maximum. Where that is more than an exponent can
    // be, as with the large numbers that masks are made of, x is the maximum or its power is 0, to whatever base.
    explicit __device__ __forceinline__ Powers(float max)
        : factor(fabsf(max) < 1e9f ? LOG2_E : 1.0f), shift(factor * finite(max)) {}

    __device__ __forceinline__ float of(float x) const { return power_of_two(factor * x - shift); }

private:
    float factor;
    float shift;
};

// Σ exp(x) of the x so far, as their maximum and Σ exp(x − maximum), so that no number is read twice.
struct Exponentials {
    float max = -infinity();
    float sum = 0.0f;

    // The sum for a larger maximum.
    __device__ __forceinline__ float scaled(float higher) const {
        return sum * power_of_two(LOG2_E * (max - finite(higher)));
    }

    __device__ __forceinline__ void raise(float higher) {
        sum = scaled(higher);
        max = higher;
    }

    __device__ __forceinline__ void add(float value) {
        raise(fmaxf(max, value));
        sum += Powers(max).of(value);
    }

    template <unsigned int COUNT, typename T> __device__ __forceinline__ void add(const Pack<T> (&packs)[COUNT]) {
        float higher = max;
#pragma unroll
        for (unsigned int p = 0; p < COUNT; ++p) {
            higher = fmaxf(higher, largest(packs[p]));
        }
        raise(higher);
        const Powers powers(higher);
        float terms[2] = {};
#pragma unroll
        for (unsigned int p = 0; p < COUNT; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < Pack<T>::LENGTH; ++i) {
                terms[i % 2] += powers.of(widen(packs[p].values[i]));
            }
        }
        sum += terms[0] + terms[1];
    }

    // Adds COUNT packs that are `step` packs apart.
    template <unsigned int COUNT, typename T> __device__ __forceinline__ void add(const T* from, size_t step) {
        Pack<T> packs[COUNT];
#pragma unroll
        for (unsigned int p = 0; p < COUNT; ++p) {
            packs[p] = load_pack(from + p * step * Pack<T>::LENGTH);
        }
        add(packs);
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
    size_t at = threadIdx.x;
    for (; at + (ROW_PACKS - 1) * blockDim.x < packs; at += ROW_PACKS * blockDim.x) {
        mine.add<ROW_PACKS>(row + head + at * LENGTH, blockDim.x);
    }
    for (; at < packs; at += blockDim.x) {
        mine.add<1>(row + head + at * LENGTH, blockDim.x);
    }
    if (threadIdx.x < classes - packs * LENGTH) {
        mine.add(widen(row[threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * LENGTH]));
    }
    const float max = reduce_block<Max>(mine.max, maxima);
    return max + logf(reduce_block<Sum>(mine.scaled(max), sums));
}

// out ← mean over rows of ln Σ exp(row) − row[target], a block for a row at a time.
template <typename T>
static __device__ __forceinline__ void cross_entropy(
    const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {
    __shared__ float maxima[MOST_WARPS];
    __shared__ float sums[MOST_WARPS];
    const Tally tally;
    float loss = 0.0f;
    unsigned int target = targets[blockIdx.x];
    for (size_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* const row = logits + r * classes;
        // Asked for before the row and used after it, and the target a row ahead, so that no thread waits for them.
        const float logit = target < classes ? widen(row[target]) : nanf("");
        target = r + gridDim.x < rows ? targets[r + gridDim.x] : 0;
        loss += log_sum_exp(row, classes, maxima, sums) - logit;
    }
    tally.add_up(threadIdx.x == 0 ? loss : 0.0f, rows, out);
}

// ---- the same, of rows of whole packs, with a warp for a row at a time

// −∞ in all of 32 bits.
template <typename T> static constexpr unsigned int LOWEST = 0xff800000u;
template <> constexpr unsigned int LOWEST<__half> = 0xfc00fc00u;
template <> constexpr unsigned int LOWEST<__nv_bfloat16> = 0xff80ff80u;

// Asks for packs of a row from `at` on, a warp's width apart; where the row has ended they are −∞.
template <typename T>
static __device__ __forceinline__ void ask(
    Pack<T> (&packs)[WARP_PACKS], const T* row, unsigned int length, unsigned int at) {
#pragma unroll
    for (unsigned int p = 0; p < WARP_PACKS; ++p) {
        const unsigned int index = at + p * WARP;
        uint4 bits = make_uint4(LOWEST<T>, LOWEST<T>, LOWEST<T>, LOWEST<T>);
        if (index < length) {
            bits = *reinterpret_cast<const uint4*>(row + static_cast<size_t>(index) * Pack<T>::LENGTH);
        }
        packs[p] = *reinterpret_cast<const Pack<T>*>(&bits);
    }
}

// No warp waits for another, and each has asked for its next packs, be they of this row or of the next one, before it adds up
// those that have arrived. That is faster where there are rows for all warps.
template <typename T>
static __device__ __forceinline__ void cross_entropy_by_warps(
    const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {
    constexpr unsigned int STEP = WARP_PACKS * WARP;
    const Tally tally;
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int length = classes / Pack<T>::LENGTH;
    // The next row begins where this one would go on.
    const bool ends_even = (length + STEP - 1) / STEP % 2 == 1;
    const size_t warps = static_cast<size_t>(gridDim.x) * (blockDim.x / WARP);
    // Neighbouring rows are different blocks', so that the last rows, which are not enough for all warps, are shared by all.
    size_t r = static_cast<size_t>(threadIdx.x / WARP) * gridDim.x + blockIdx.x;
    float loss = 0.0f;
    if (r < rows) {
        const T* row = logits + r * classes;
        unsigned int target = targets[r];
        Pack<T> even[WARP_PACKS];
        Pack<T> odd[WARP_PACKS];
        ask(even, row, length, lane);
        for (bool has_next = true; has_next; r += warps) {
            has_next = r + warps < rows;
            const T* const next = row + warps * classes;
            const float logit = target < classes ? widen(row[target]) : nanf("");
            if (has_next) {
                target = targets[r + warps];
            }
            Exponentials part;
            for (unsigned int first = 0; first < length; first += 2 * STEP) {
                const bool has_odd = first + STEP < length;
                if (has_odd) {
                    ask(odd, row, length, first + STEP + lane);
                } else if (has_next) {
                    ask(odd, next, length, lane);
                }
                part.add(even);
                if (first + 2 * STEP < length) {
                    ask(even, row, length, first + 2 * STEP + lane);
                } else if (has_odd && has_next) {
                    ask(even, next, length, lane);
                }
                if (has_odd) {
                    part.add(odd);
                }
            }
            if (ends_even) {
#pragma unroll
                for (unsigned int p = 0; p < WARP_PACKS; ++p) {
                    even[p] = odd[p];
                }
            }
            const float max = reduce_warp<Max>(part.max);
            loss += max + logf(reduce_warp<Sum>(part.scaled(max))) - logit;
            row = next;
        }
    }
    tally.add_up(loss, rows, out);
}

#define CROSS_ENTROPY(T, suffix)                                                                                       \
    extern "C" __global__ void cross_entropy_##suffix(                                                                 \
        const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {                       \
        cross_entropy(logits, targets, out, rows, classes);                                                            \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024, 1) cross_entropy_by_warps_##suffix(                             \
        const T* logits, const unsigned int* targets, float* out, size_t rows, size_t classes) {                       \
        cross_entropy_by_warps(logits, targets, out, rows, classes);                                                   \
    }
FOR_FLOATS(CROSS_ENTROPY)

// ---- cross entropy in two steps

// out ← logits − ln Σ exp(logits), a block for each row.
template <typename T>
static __device__ __forceinline__ void log_probabilities(const T* logits, float* out, size_t classes) {
    __shared__ float maxima[MOST_WARPS];
    __shared__ float sums[MOST_WARPS];
    logits += blockIdx.x * classes;
    out += blockIdx.x * classes;
    const float shift = log_sum_exp(logits, classes, maxima, sums);
    for (size_t i = threadIdx.x; i < classes; i += blockDim.x) {
        out[i] = widen(logits[i]) - shift;
    }
}

#define LOG_PROBABILITIES(T, suffix)                                                                                   \
    extern "C" __global__ void log_probabilities_##suffix(const T* logits, float* out, size_t classes) {               \
        log_probabilities(logits, out, classes);                                                                       \
    }
FOR_FLOATS(LOG_PROBABILITIES)

// out ← −mean over rows of log_probabilities[row, target], a thread for a row at a time.
extern "C" __global__ void mean_of_targets(
    const float* log_probabilities, const unsigned int* targets, float* out, size_t rows, size_t classes) {
    const Tally tally;
    float loss = 0.0f;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t r = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; r < rows; r += step) {
        const unsigned int target = targets[r];
        loss -= target < classes ? log_probabilities[r * classes + target] : nanf("");
    }
    tally.add_up(reduce_warp<Sum>(loss), rows, out);
}
