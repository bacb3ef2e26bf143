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
            packs[p] = load_pack(x + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                packs[p].values[i] = narrow<T>(function(widen(packs[p].values[i])));
            }
            store_pack(out + first + p * step, packs[p]);
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
            left[p] = load_pack(x + first + p * step);
            right[p] = load_pack(y + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                left[p].values[i] = narrow<T>(function(widen(left[p].values[i]), widen(right[p].values[i])));
            }
            store_pack(out + first + p * step, left[p]);
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

static constexpr float LOG2_E = 1.4426950f;

static __device__ __forceinline__ float reciprocal(float x) { return __fdividef(1.0f, x); }

static __device__ __forceinline__ float sigmoid(float x) { return reciprocal(1.0f + power_of_two(-LOG2_E * x)); }

// x·(1 + erf(x/√2))/2 = max(x, 0) − |x|·erfc(|x|/√2)/2, with erfc z = e^−z² times a polynomial of t = 1/(1 + p·z), good to
// 1.5·10⁻⁷ (Abramowitz and Stegun, 7.1.26): erff is right to the last place, and takes longer than memory does with f16.
static __device__ __forceinline__ float gelu(float x) {
    const float magnitude = fabsf(x) > 100.0f ? 100.0f : fabsf(x); // so that infinity is not multiplied by zero
    const float t = reciprocal(1.0f + 0.3275911f * 0.70710678f * magnitude);
    float series = 1.061405429f * t - 1.453152027f;
    series = series * t + 1.421413741f;
    series = series * t - 0.284496736f;
    series = series * t + 0.254829592f;
    const float tail = series * t * power_of_two(-0.5f * LOG2_E * magnitude * magnitude);
    return fmaxf(x, 0.0f) - 0.5f * magnitude * tail;
}

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
