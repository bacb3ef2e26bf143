// Floats as integers of 8 bits with a scale: one block for each row, which its threads keep in their registers between
// finding the largest element and writing; of a row that is too long for that, the rest is read twice.
//
// Launched with one block for each row, of a whole number of warps, at most MOST_WARPS.

#include "common.cuh"

// Vectors of four floats that a thread keeps.
static constexpr unsigned int QUANTISATION_PACKS = 4;
static constexpr float QUANTISATION_LARGEST = 127.0f;
// A row whose largest element is below becomes zeros: the factor would not be finite.
static constexpr float QUANTISATION_NEXT_TO_NOTHING = 1e-36f;

using Floats = Pack<float>;

static __device__ __forceinline__ float largest_magnitude(const Floats& pack) {
    const float* const v = pack.values;
    return fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3])));
}

// A row in a scale of its own: `write` is given elements, four at once with the index of the first or one with its own,
// together with scale and factor. Both divisions and all products are rounded as on a processor.
template <typename WriteFour, typename WriteOne>
static __device__ __forceinline__ float quantise_row(
    const float* x, bool in_fours, size_t dim, WriteFour write_four, WriteOne write_one) {
    __shared__ float maxima[MOST_WARPS];
    const size_t packs = in_fours ? dim / Floats::LENGTH : 0;
    Floats kept[QUANTISATION_PACKS];
    float max = 0.0f;
#pragma unroll
    for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
        const size_t pack = threadIdx.x + p * blockDim.x;
        if (pack < packs) {
            kept[p] = stream_pack(x + pack * Floats::LENGTH);
        }
    }
#pragma unroll
    for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
        if (threadIdx.x + p * blockDim.x < packs) {
            max = fmaxf(max, largest_magnitude(kept[p]));
        }
    }
    const size_t beyond = threadIdx.x + QUANTISATION_PACKS * blockDim.x;
    for (size_t pack = beyond; pack < packs; pack += blockDim.x) {
        max = fmaxf(max, largest_magnitude(load_pack(x + pack * Floats::LENGTH)));
    }
    for (size_t i = packs * Floats::LENGTH + threadIdx.x; i < dim; i += blockDim.x) {
        max = fmaxf(max, fabsf(x[i]));
    }
    max = reduce_block<Max>(max, maxima);

    const float scale = __fdiv_rn(max, QUANTISATION_LARGEST);
    const float factor = max < QUANTISATION_NEXT_TO_NOTHING ? 0.0f : __fdiv_rn(QUANTISATION_LARGEST, max);
#pragma unroll
    for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
        const size_t pack = threadIdx.x + p * blockDim.x;
        if (pack < packs) {
            write_four(pack * Floats::LENGTH, kept[p], scale, factor);
        }
    }
    for (size_t pack = beyond; pack < packs; pack += blockDim.x) {
        write_four(pack * Floats::LENGTH, load_pack(x + pack * Floats::LENGTH), scale, factor);
    }
    for (size_t i = packs * Floats::LENGTH + threadIdx.x; i < dim; i += blockDim.x) {
        write_one(i, x[i], scale, factor);
    }
    return scale;
}

static __device__ __forceinline__ int quantised(float x, float factor) { return __float2int_rn(x * factor); }

// values ← round(x / scale), scales ← max|x| / 127, row by row
extern "C" __global__ void quantise(const float* x, signed char* values, float* scales, size_t dim) {
    x += blockIdx.x * dim;
    values += blockIdx.x * dim;
    const bool in_fours = is_aligned(x) && reinterpret_cast<size_t>(values) % sizeof(char4) == 0;
    const float scale = quantise_row(
        x, in_fours, dim,
        [values](size_t i, const Floats& pack, float, float factor) {
            const float* const v = pack.values;
            const char4 four = make_char4(
                quantised(v[0], factor), quantised(v[1], factor), quantised(v[2], factor), quantised(v[3], factor));
            *reinterpret_cast<char4*>(values + i) = four;
        },
        [values](size_t i, float x, float, float factor) { values[i] = quantised(x, factor); });
    if (threadIdx.x == 0) {
        scales[blockIdx.x] = scale;
    }
}

// out ← x quantised and dequantised, row by row
extern "C" __global__ void quantise_round_trip(const float* x, float* out, size_t dim) {
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    quantise_row(
        x, is_aligned(x) && is_aligned(out), dim,
        [out](size_t i, Floats pack, float scale, float factor) {
#pragma unroll
            for (unsigned int j = 0; j < Floats::LENGTH; ++j) {
                pack.values[j] = quantised(pack.values[j], factor) * scale;
            }
            stream_pack(out + i, pack);
        },
        [out](size_t i, float x, float scale, float factor) { out[i] = quantised(x, factor) * scale; });
}

// out ← values · scale, row by row: blockIdx.x is the row, blockIdx.y a part of it.
extern "C" __global__ void dequantise(const signed char* values, const float* scales, float* out, size_t dim) {
    const float scale = scales[blockIdx.x];
    values += blockIdx.x * dim;
    out += blockIdx.x * dim;
    const bool in_fours = is_aligned(out) && reinterpret_cast<size_t>(values) % sizeof(char4) == 0;
    const size_t step = blockDim.x * Floats::LENGTH;
    const size_t first = blockIdx.y * step * QUANTISATION_PACKS + threadIdx.x * Floats::LENGTH;
    if (in_fours && first + (QUANTISATION_PACKS - 1) * step + Floats::LENGTH <= dim) {
        char4 fours[QUANTISATION_PACKS];
#pragma unroll
        for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
            fours[p] = __ldcs(reinterpret_cast<const char4*>(values + first + p * step));
        }
#pragma unroll
        for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
            const Floats pack = {{fours[p].x * scale, fours[p].y * scale, fours[p].z * scale, fours[p].w * scale}};
            stream_pack(out + first + p * step, pack);
        }
        return;
    }
    for (unsigned int p = 0; p < QUANTISATION_PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + Floats::LENGTH && i < dim; ++i) {
            out[i] = values[i] * scale;
        }
    }
}
