// Memory as fast as it goes: every thread moves some vectors of 16 bytes, all of which it asks for before it writes the first,
// so that enough of them are on their way.
//
// Launched with as many threads as it takes to cover n at COPY_PACKS or FILL_PACKS packs each.

#include "common.cuh"

static constexpr unsigned int COPY_PACKS = 2;
static constexpr unsigned int FILL_PACKS = 4;

// The first element of a thread; its packs are a block apart, those of neighbouring threads are neighbours.
static __device__ __forceinline__ size_t first_element(unsigned int packs) {
    return (static_cast<size_t>(blockIdx.x) * blockDim.x * packs + threadIdx.x) * Pack<float>::LENGTH;
}

// out ← x
extern "C" __global__ void copy(const float* x, float* out, size_t n) {
    constexpr size_t LENGTH = Pack<float>::LENGTH;
    const size_t first = first_element(COPY_PACKS);
    const size_t step = blockDim.x * LENGTH;
    if (first + (COPY_PACKS - 1) * step + LENGTH <= n && is_aligned(x) && is_aligned(out)) {
        Pack<float> packs[COPY_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < COPY_PACKS; ++p) {
            packs[p] = load_pack(x + first + p * step);
        }
#pragma unroll
        for (unsigned int p = 0; p < COPY_PACKS; ++p) {
            store_pack(out + first + p * step, packs[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < COPY_PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = x[i];
        }
    }
}

// out ← value
extern "C" __global__ void fill(float value, float* out, size_t n) {
    constexpr size_t LENGTH = Pack<float>::LENGTH;
    const size_t first = first_element(FILL_PACKS);
    const size_t step = blockDim.x * LENGTH;
    if (first + (FILL_PACKS - 1) * step + LENGTH <= n && is_aligned(out)) {
        const Pack<float> pack = {{value, value, value, value}};
#pragma unroll
        for (unsigned int p = 0; p < FILL_PACKS; ++p) {
            stream_pack(out + first + p * step, pack);
        }
        return;
    }
    for (unsigned int p = 0; p < FILL_PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            out[i] = value;
        }
    }
}
