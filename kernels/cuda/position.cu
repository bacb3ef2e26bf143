// Rotary position embedding (Su et al. 2021): pairs of elements turned by an angle that grows with the position.
//
// A thread turns the same pairs of one or more heads of a position, for which it needs the angles once. Launched with one
// thread for each position, group of Angles::HEADS heads, and vector of pairs, in blocks of any size.

#include "common.cuh"

// ---- angles

// From tables with `half` values per position.
struct AngleTable {
    // Heads of a thread: the table is in the cache, so that threads need not share it.
    static constexpr unsigned int HEADS = 1;

    const float* cos;
    const float* sin;

    template <unsigned int LENGTH>
    __device__ __forceinline__ void read(
        size_t position, unsigned int pair, unsigned int half, float (&cosines)[LENGTH], float (&sines)[LENGTH]) const {
        const size_t first = position * half + pair;
        if constexpr (LENGTH == 1) {
            cosines[0] = cos[first];
            sines[0] = sin[first];
        } else {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; i += 4) {
                *reinterpret_cast<float4*>(cosines + i) = *reinterpret_cast<const float4*>(cos + first + i);
                *reinterpret_cast<float4*>(sines + i) = *reinterpret_cast<const float4*>(sin + first + i);
            }
        }
    }
};

// Computed: pair i turns by ratio^i radians per position.
//
// An angle of 32768 radians has to be known to 2⁻²⁴, which takes 39 bits: more than f32 has. So a frequency is the fraction of
// a turn per position, as an integer in units of 2⁻⁶⁴. Its product with the position wraps around as angles do: what is left
// is the fraction of the last turn, good to 2⁻³⁷ at position 32768, as the 53 bits of a double are.
struct AngleFormula {
    // Heads of a thread: one head would wait for the arithmetic, where elements have 16 bits.
    static constexpr unsigned int HEADS = 2;

    double ratio;

    template <unsigned int LENGTH>
    __device__ __forceinline__ void read(
        size_t position, unsigned int pair, unsigned int, float (&cosines)[LENGTH], float (&sines)[LENGTH]) const {
        constexpr double UNITS_PER_RADIAN = 18446744073709551616.0 / 6.283185307179586;
        double frequency = UNITS_PER_RADIAN;
        double power = ratio;
        for (unsigned int bits = pair; bits > 0; bits /= 2) {
            frequency *= bits % 2 ? power : 1.0;
            power *= power;
        }
#pragma unroll
        for (unsigned int i = 0; i < LENGTH; ++i) {
            const unsigned long long turn = position * __double2ull_rn(frequency);
            // The upper half as a signed number: from −½ turn, which is −π, to ½.
            sincospif(static_cast<int>(turn >> 32) * 0x1p-31f, sines + i, cosines + i);
            frequency *= ratio;
        }
    }
};

// ---- the rotation

// Vectors of LENGTH pairs.
template <unsigned int LENGTH, typename T, typename Angles>
static __device__ __forceinline__ void rotate(
    T* x, unsigned int threads, unsigned int half, unsigned int heads, const Angles& angles) {
    constexpr unsigned int HEADS = Angles::HEADS;
    const unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads) {
        return;
    }
    const unsigned int vectors = half / LENGTH;
    const unsigned int groups = (heads + HEADS - 1) / HEADS;
    const unsigned int pair = thread % vectors * LENGTH;
    const unsigned int group = thread / vectors % groups;
    const size_t position = thread / (vectors * groups);
    x += position * heads * 2 * half + pair;

    using Elements = Vector<T, LENGTH>;
    // Neighbouring groups have neighbouring heads.
    Elements first[HEADS];
    Elements second[HEADS];
#pragma unroll
    for (unsigned int h = 0; h < HEADS; ++h) {
        const unsigned int head = group + h * groups;
        if (head < heads) {
            first[h] = Elements::load(x + head * 2 * half);
            second[h] = Elements::load(x + head * 2 * half + half);
        }
    }
    float cosines[LENGTH];
    float sines[LENGTH];
    angles.read(position, pair, half, cosines, sines);
#pragma unroll
    for (unsigned int h = 0; h < HEADS; ++h) {
        const unsigned int head = group + h * groups;
        if (head < heads) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                const float a = widen(first[h].values[i]);
                const float b = widen(second[h].values[i]);
                first[h].values[i] = narrow<T>(a * cosines[i] - b * sines[i]);
                second[h].values[i] = narrow<T>(a * sines[i] + b * cosines[i]);
            }
            first[h].store(x + head * 2 * half);
            second[h].store(x + head * 2 * half + half);
        }
    }
}

// Turns every head of every position. `x` is sequence × heads × 2·half; element i of a head is paired with element i + half.
// `length` is the number of pairs in a vector: those of a pack where half a head is whole packs, or 1.
template <typename T, typename Angles>
static __device__ __forceinline__ void rotate_all(
    T* x, size_t threads, size_t half, size_t heads, size_t length, const Angles& angles) {
    if (length == 1) {
        rotate<1>(x, threads, half, heads, angles);
    } else {
        rotate<Pack<T>::LENGTH>(x, threads, half, heads, angles);
    }
}

#define ROPE(T, suffix)                                                                                                \
    extern "C" __global__ void rope_##suffix(                                                                          \
        T* x, const float* cos, const float* sin, size_t threads, size_t half, size_t heads, size_t length) {          \
        rotate_all(x, threads, half, heads, length, AngleTable{cos, sin});                                             \
    }                                                                                                                  \
    extern "C" __global__ void rope_on_the_fly_##suffix(                                                               \
        T* x, double ratio, size_t threads, size_t half, size_t heads, size_t length) {                                \
        rotate_all(x, threads, half, heads, length, AngleFormula{ratio});                                              \
    }
FOR_FLOATS(ROPE)
