// One output element from one element of each input, bound by memory: every thread reads ELEMENTWISE_PACKS vectors of 16
// bytes of each input before it computes, so that enough of them are on their way to keep memory busy.
//
// Launched with as many threads as it takes to cover n at ELEMENTWISE_PACKS packs each, in blocks of any size.

#include "common.cuh"

static constexpr unsigned int ELEMENTWISE_PACKS = 2;

// out[i] ← function(x[i])
template <typename T, typename Function>
static __device__ __forceinline__ void map_one(const T* x, T* out, size_t n, Function function) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    // Packs of neighbouring threads are neighbours; those of one thread are a block apart.
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x * ELEMENTWISE_PACKS + threadIdx.x) * LENGTH;
    const size_t step = blockDim.x * LENGTH;
    if (first + (ELEMENTWISE_PACKS - 1) * step + LENGTH <= n && is_aligned(x) && is_aligned(out)) {
        Pack<T> packs[ELEMENTWISE_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
            packs[p] = stream_pack(x + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                packs[p].values[i] = narrow<T>(function(widen(packs[p].values[i])));
            }
            stream_pack(out + first + p * step, packs[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = narrow<T>(function(widen(x[i])));
        }
    }
}

// out[i] ← function(x[i], y[i])
template <typename T, typename Function>
static __device__ __forceinline__ void map_two(const T* x, const T* y, T* out, size_t n, Function function) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x * ELEMENTWISE_PACKS + threadIdx.x) * LENGTH;
    const size_t step = blockDim.x * LENGTH;
    if (first + (ELEMENTWISE_PACKS - 1) * step + LENGTH <= n && is_aligned(x) && is_aligned(y) && is_aligned(out)) {
        Pack<T> left[ELEMENTWISE_PACKS];
        Pack<T> right[ELEMENTWISE_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
            left[p] = stream_pack(x + first + p * step);
            right[p] = stream_pack(y + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                left[p].values[i] = narrow<T>(function(widen(left[p].values[i]), widen(right[p].values[i])));
            }
            stream_pack(out + first + p * step, left[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < ELEMENTWISE_PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = narrow<T>(function(widen(x[i]), widen(y[i])));
        }
    }
}

// y ← a·x + y
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
    map_two(x, y, y, n, [a](float x, float y) { return a * x + y; });
}

#define UNARY(T, suffix)                                                                                               \
    extern "C" __global__ void relu_##suffix(const T* x, T* out, size_t n) {                                           \
        map_one(x, out, n, [](float x) { return x < 0.0f ? 0.0f : x; });                                               \
    }                                                                                                                  \
    extern "C" __global__ void silu_##suffix(const T* x, T* out, size_t n) {                                           \
        map_one(x, out, n, [](float x) { return x / (1.0f + __expf(-x)); });                                           \
    }
FOR_FLOATS(UNARY)

#define BINARY(T, suffix)                                                                                              \
    extern "C" __global__ void add_##suffix(const T* x, const T* y, T* out, size_t n) {                                \
        map_two(x, y, out, n, [](float x, float y) { return x + y; });                                                 \
    }
FOR_FLOATS(BINARY)
