// Many elements, one result, in one launch: every block reduces its share, and one of them joins what all have found.
//
// Launched with at most MOST_BLOCKS blocks of 256 threads, as many as run at once.

#include "meeting.cuh"

// Vectors of 16 bytes of each input that a thread asks for before it computes.
static constexpr unsigned int REDUCTION_PACKS = 4;

// out ← the sum over all threads of all blocks.
static __device__ __forceinline__ void add_up(const Meeting& meeting, const float (&sums)[REDUCTION_PACKS], float* out) {
    __shared__ float of_warps[MOST_WARPS];
    float value = 0.0f;
#pragma unroll
    for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
        value += sums[p];
    }
    meeting.add_up(reduce_block<Sum>(value, of_warps), 1.0f, out);
}

// What neighbouring threads read is neighbouring; all threads of the grid together go through the elements in tiles.
template <typename T> struct Tiles {
    static constexpr size_t LENGTH = Pack<T>::LENGTH;
    size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
};

template <bool PAST_CACHE, typename T> static __device__ __forceinline__ Pack<T> reduction_pack(const T* from) {
    return PAST_CACHE ? stream_pack(from) : load_pack(from);
}

// out ← Σ x
template <bool PAST_CACHE, typename T> static __device__ __forceinline__ void sum(const T* x, float* out, size_t n) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    const Meeting meeting;
    const Tiles<T> tiles;
    const size_t packs = is_aligned(x) ? n / LENGTH : 0;
    float sums[REDUCTION_PACKS] = {};
    const auto add = [&sums](const Pack<T>& pack, unsigned int p) {
#pragma unroll
        for (unsigned int i = 0; i < LENGTH; ++i) {
            sums[p] += widen(pack.values[i]);
        }
    };
    size_t pack = tiles.thread;
    for (; pack + (REDUCTION_PACKS - 1) * tiles.threads < packs; pack += REDUCTION_PACKS * tiles.threads) {
        Pack<T> values[REDUCTION_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            values[p] = reduction_pack<PAST_CACHE>(x + (pack + p * tiles.threads) * LENGTH);
        }
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            add(values[p], p);
        }
    }
    for (; pack < packs; pack += tiles.threads) {
        add(reduction_pack<PAST_CACHE>(x + pack * LENGTH), 0);
    }
    for (size_t i = packs * LENGTH + tiles.thread; i < n; i += tiles.threads) {
        sums[0] += widen(x[i]);
    }
    add_up(meeting, sums, out);
}

// out ← Σ x·y
template <bool PAST_CACHE, typename T>
static __device__ __forceinline__ void dot(const T* x, const T* y, float* out, size_t n) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    const Meeting meeting;
    const Tiles<T> tiles;
    const size_t packs = is_aligned(x) && is_aligned(y) ? n / LENGTH : 0;
    float sums[REDUCTION_PACKS] = {};
    const auto add = [&sums](const Pack<T>& left, const Pack<T>& right, unsigned int p) {
#pragma unroll
        for (unsigned int i = 0; i < LENGTH; ++i) {
            sums[p] = fmaf(widen(left.values[i]), widen(right.values[i]), sums[p]);
        }
    };
    size_t pack = tiles.thread;
    for (; pack + (REDUCTION_PACKS - 1) * tiles.threads < packs; pack += REDUCTION_PACKS * tiles.threads) {
        Pack<T> left[REDUCTION_PACKS];
        Pack<T> right[REDUCTION_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            left[p] = reduction_pack<PAST_CACHE>(x + (pack + p * tiles.threads) * LENGTH);
            right[p] = reduction_pack<PAST_CACHE>(y + (pack + p * tiles.threads) * LENGTH);
        }
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            add(left[p], right[p], p);
        }
    }
    for (; pack < packs; pack += tiles.threads) {
        add(reduction_pack<PAST_CACHE>(x + pack * LENGTH), reduction_pack<PAST_CACHE>(y + pack * LENGTH), 0);
    }
    for (size_t i = packs * LENGTH + tiles.thread; i < n; i += tiles.threads) {
        sums[0] = fmaf(widen(x[i]), widen(y[i]), sums[0]);
    }
    add_up(meeting, sums, out);
}

#define SUMS(T, suffix)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                               \
        sum_##suffix(const T* x, float* out, size_t n, unsigned int past_cache) {                                      \
        past_cache ? sum<true>(x, out, n) : sum<false>(x, out, n);                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                               \
        dot_##suffix(const T* x, const T* y, float* out, size_t n, unsigned int past_cache) {                          \
        past_cache ? dot<true>(x, y, out, n) : dot<false>(x, y, out, n);                                               \
    }
FOR_FLOATS(SUMS)

// A number that is larger for a larger value and, of equal values, for the smaller index; never 0. NaN counts as −∞.
static __device__ __forceinline__ unsigned long long argmax_key(float value, unsigned int index) {
    // Both zeros are equal; fmaxf gives its other argument when one is NaN.
    const unsigned int bits = __float_as_uint(fmaxf(value, -infinity()) + 0.0f);
    const unsigned int ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<unsigned long long>(ordered) << 32 | ~index;
}

static __device__ __forceinline__ unsigned long long argmax_block(unsigned long long key) {
    __shared__ unsigned long long of_warps[MOST_WARPS];
    const unsigned int lane = threadIdx.x % WARP;
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        key = max(key, __shfl_xor_sync(ALL_LANES, key, distance));
    }
    __syncthreads(); // of_warps may still be read from the call before
    if (lane == 0) {
        of_warps[threadIdx.x / WARP] = key;
    }
    __syncthreads();
    key = lane < blockDim.x / WARP ? of_warps[lane] : 0;
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        key = max(key, __shfl_xor_sync(ALL_LANES, key, distance));
    }
    return key;
}

// value ← the largest x[i], index ← the first i with it
template <bool PAST_CACHE>
static __device__ __forceinline__ void argmax(const float* x, float* value, unsigned int* index, size_t n) {
    constexpr size_t LENGTH = Pack<float>::LENGTH;
    const Meeting meeting;
    const Tiles<float> tiles;
    const size_t packs = is_aligned(x) ? n / LENGTH : 0;
    // A thread goes up, so that of equals the first stays. It remembers the pack; where in it is looked up at the end.
    float best = -infinity();
    size_t best_pack = tiles.thread;
    const auto look_at = [&best, &best_pack](const Pack<float>& pack, size_t number) {
        const float* const v = pack.values;
        const float largest = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
        if (largest > best) {
            best = largest;
            best_pack = number;
        }
    };
    size_t pack = tiles.thread;
    for (; pack + (REDUCTION_PACKS - 1) * tiles.threads < packs; pack += REDUCTION_PACKS * tiles.threads) {
        Pack<float> values[REDUCTION_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            values[p] = reduction_pack<PAST_CACHE>(x + (pack + p * tiles.threads) * LENGTH);
        }
#pragma unroll
        for (unsigned int p = 0; p < REDUCTION_PACKS; ++p) {
            look_at(values[p], pack + p * tiles.threads);
        }
    }
    for (; pack < packs; pack += tiles.threads) {
        look_at(reduction_pack<PAST_CACHE>(x + pack * LENGTH), pack);
    }
    unsigned long long key = argmax_key(-infinity(), 0);
    for (size_t i = best_pack * LENGTH; i < (best_pack + 1) * LENGTH && best_pack < packs; ++i) {
        key = max(key, argmax_key(x[i], i));
    }
    for (size_t i = packs * LENGTH + tiles.thread; i < n; i += tiles.threads) {
        key = max(key, argmax_key(x[i], i));
    }

    key = argmax_block(key);
    if (meeting.hand_in(key)) {
        key = 0;
        Meeting::take([&key](unsigned long long other) { key = max(key, other); });
        key = argmax_block(key);
        if (threadIdx.x == 0) {
            *index = ~static_cast<unsigned int>(key);
            *value = n == 0 ? -infinity() : fmaxf(x[~static_cast<unsigned int>(key)], -infinity());
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    argmax_f32(const float* x, float* value, unsigned int* index, size_t n, unsigned int past_cache) {
    past_cache ? argmax<true>(x, value, index, n) : argmax<false>(x, value, index, n);
}
