// What CUDA sources of the library have in common: floats of three widths, vectors of 16 bytes, and reductions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// ENTRY(element type, suffix of the entry point) for each of the three floats.
#define FOR_FLOATS(ENTRY) ENTRY(float, f32) ENTRY(__half, f16) ENTRY(__nv_bfloat16, bf16)

static constexpr unsigned int WARP = 32;
static constexpr unsigned int ALL_LANES = 0xffffffffu;
// Warps of a block at most.
static constexpr unsigned int MOST_WARPS = 32;

// ---- numbers: all arithmetic is in f32

static __device__ __forceinline__ float widen(float value) { return value; }
static __device__ __forceinline__ float widen(__half value) { return __half2float(value); }
static __device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T> static __device__ __forceinline__ T narrow(float value);
template <> __device__ __forceinline__ float narrow<float>(float value) { return value; }
template <> __device__ __forceinline__ __half narrow<__half>(float value) { return __float2half_rn(value); }
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float value) { return __float2bfloat16_rn(value); }

// Two numbers in 32 bits, the first in the lower half.
static __device__ __forceinline__ unsigned int narrow_pair(__half, float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned int*>(&pair);
}

static __device__ __forceinline__ unsigned int narrow_pair(__nv_bfloat16, float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned int*>(&pair);
}

static __device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

// 2^x in one instruction, good to two units in the last place; what is below the normal numbers becomes 0.
static __device__ __forceinline__ float power_of_two(float x) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

// ---- 16 bytes of memory, read and written at once

template <typename T> struct __align__(16) Pack {
    static constexpr unsigned int LENGTH = 16 / sizeof(T);
    T values[LENGTH];
};

template <typename T> static __device__ __forceinline__ Pack<T> load_pack(const T* from) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<const Pack<T>*>(&bits);
}

// For data that is read once: it need not stay in the caches.
template <typename T> static __device__ __forceinline__ Pack<T> stream_pack(const T* from) {
    const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<const Pack<T>*>(&bits);
}

template <typename T> static __device__ __forceinline__ void store_pack(T* to, const Pack<T>& pack) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&pack);
}

// For data that is not read again soon.
template <typename T> static __device__ __forceinline__ void stream_pack(T* to, const Pack<T>& pack) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&pack));
}

// Elements that are read and written at once: a pack, or a single one where packs cannot be.
template <typename T, unsigned int LENGTH> struct Vector {
    static_assert(LENGTH == 1 || LENGTH == Pack<T>::LENGTH, "a vector is a pack or a single element");

    T values[LENGTH];

    static __device__ __forceinline__ Vector load(const T* from) {
        if constexpr (LENGTH == 1) {
            return {*from};
        } else {
            const Pack<T> pack = load_pack(from);
            return *reinterpret_cast<const Vector*>(&pack);
        }
    }

    __device__ __forceinline__ void store(T* to) const {
        if constexpr (LENGTH == 1) {
            *to = values[0];
        } else {
            Pack<T> pack;
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                pack.values[i] = values[i];
            }
            store_pack(to, pack);
        }
    }
};

// Whether an address can be read and written in packs.
static __device__ __forceinline__ bool is_aligned(const void* address) {
    return reinterpret_cast<size_t>(address) % 16 == 0;
}

// ---- reductions: every thread gets the same bits, as the order of the arguments of `join` makes no difference

struct Sum {
    static __device__ __forceinline__ float start() { return 0.0f; }
    static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

struct Max {
    static __device__ __forceinline__ float start() { return -infinity(); }
    static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
};

template <typename Join> static __device__ __forceinline__ float reduce_warp(float value) {
#pragma unroll
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        value = Join::join(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}

// Joins the values of all threads of a block of whole warps. `partial` is shared memory for MOST_WARPS values that nothing
// else in the kernel uses: then one barrier is enough.
template <typename Join> static __device__ __forceinline__ float reduce_block(float value, float* partial) {
    const unsigned int lane = threadIdx.x % WARP;
    value = reduce_warp<Join>(value);
    if (lane == 0) {
        partial[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    return reduce_warp<Join>(lane < blockDim.x / WARP ? partial[lane] : Join::start());
}
