// One output element from one element of each input, bound by memory: every thread reads PACKS vectors of 16 bytes of each
// input before it computes, so that enough of them are on their way to keep memory busy.
//
// Launched with as many threads as it takes to cover n at PACKS packs each, in blocks of any size.

#include "common.cuh"

static constexpr unsigned int PACKS = 2;

// out[i] ← function(x[i])
template <typename T, typename Function>
static __device__ __forceinline__ void map_one(const T* x, T* out, size_t n, Function function) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    // Packs of neighbouring threads are neighbours; those of one thread are a block apart.
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * LENGTH;
    const size_t step = blockDim.x * LENGTH;
    if (first + (PACKS - 1) * step + LENGTH <= n && is_aligned(x) && is_aligned(out)) {
        Pack<T> packs[PACKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            packs[p] = stream_pack(x + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                packs[p].values[i] = narrow<T>(function(widen(packs[p].values[i])));
            }
            stream_pack(out + first + p * step, packs[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = narrow<T>(function(widen(x[i])));
        }
    }
}

// out[i] ← function(x[i], y[i])
template <typename T, typename Function>
static __device__ __forceinline__ void map_two(const T* x, const T* y, T* out, size_t n, Function function) {
    constexpr size_t LENGTH = Pack<T>::LENGTH;
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * LENGTH;
    const size_t step = blockDim.x * LENGTH;
    if (first + (PACKS - 1) * step + LENGTH <= n && is_aligned(x) && is_aligned(y) && is_aligned(out)) {
        Pack<T> left[PACKS];
        Pack<T> right[PACKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            left[p] = stream_pack(x + first + p * step);
            right[p] = stream_pack(y + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                left[p].values[i] = narrow<T>(function(widen(left[p].values[i]), widen(right[p].values[i])));
            }
            stream_pack(out + first + p * step, left[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = narrow<T>(function(widen(x[i]), widen(y[i])));
        }
    }
}

// y ← a·x + y
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
    map_two(x, y, y, n, [a](float x, float y) { return a * x + y; });
}

static __device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

static __device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

// (1 + tanh u) / 2 is the sigmoid of 2u.
static __device__ __forceinline__ float gelu_tanh(float x) {
    constexpr float SCALE = 1.5957691f; // 2·√(2/π)
    return x * sigmoid(x * (SCALE + SCALE * 0.044715f * (x * x)));
}

#define UNARY(name, value)                                                                                             \
    extern "C" __global__ void name##_f32(const float* x, float* out, size_t n) {                                      \
        map_one(x, out, n, [](float x) { return value; });                                                             \
    }                                                                                                                  \
    extern "C" __global__ void name##_f16(const __half* x, __half* out, size_t n) {                                    \
        map_one(x, out, n, [](float x) { return value; });                                                             \
    }                                                                                                                  \
    extern "C" __global__ void name##_bf16(const __nv_bfloat16* x, __nv_bfloat16* out, size_t n) {                     \
        map_one(x, out, n, [](float x) { return value; });                                                             \
    }

UNARY(relu, x < 0.0f ? 0.0f : x)
UNARY(gelu, gelu(x))
UNARY(gelu_tanh, gelu_tanh(x))
UNARY(silu, x * sigmoid(x))

#define BINARY(name, value)                                                                                            \
    extern "C" __global__ void name##_f32(const float* x, const float* y, float* out, size_t n) {                      \
        map_two(x, y, out, n, [](float x, float y) { return value; });                                                 \
    }                                                                                                                  \
    extern "C" __global__ void name##_f16(const __half* x, const __half* y, __half* out, size_t n) {                   \
        map_two(x, y, out, n, [](float x, float y) { return value; });                                                 \
    }                                                                                                                  \
    extern "C" __global__ void name##_bf16(                                                                            \
        const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, size_t n) {                                \
        map_two(x, y, out, n, [](float x, float y) { return value; });                                                 \
    }

BINARY(add, x + y)
BINARY(mul, x * y)
BINARY(div, x / y)
