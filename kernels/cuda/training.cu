// Dropout, bound by memory if the random words are made while the data is on its way: every thread asks for PACKS vectors
// of 16 bytes, and computes the words before it looks at them.
//
// Launched with as many threads as it takes to cover n at PACKS packs each, in blocks of any size.

#include "common.cuh"

static constexpr unsigned int PACKS = 2;

// Words that Philox makes of a counter.
static constexpr unsigned int WORDS = 4;

// Philox4x32-10 (Salmon and others, 2011) of the counter (block, 0) and a key.
static __device__ __forceinline__ uint4 philox(unsigned long long block, unsigned long long key) {
    uint4 counter = make_uint4(static_cast<unsigned int>(block), static_cast<unsigned int>(block >> 32), 0, 0);
    uint2 keys = make_uint2(static_cast<unsigned int>(key), static_cast<unsigned int>(key >> 32));
#pragma unroll
    for (unsigned int round = 0; round < 10; ++round) {
        const unsigned long long left = 0xd2511f53ull * counter.x;
        const unsigned long long right = 0xcd9e8d57ull * counter.z;
        counter = make_uint4(
            static_cast<unsigned int>(right >> 32) ^ counter.y ^ keys.x, static_cast<unsigned int>(right),
            static_cast<unsigned int>(left >> 32) ^ counter.w ^ keys.y, static_cast<unsigned int>(left));
        keys.x += 0x9e3779b9u;
        keys.y += 0xbb67ae85u;
    }
    return counter;
}

// Which words keep their element, and by what it is multiplied.
struct Rule {
    unsigned int least;
    float scale;

    template <typename T> __device__ __forceinline__ T apply(T value, unsigned int word) const {
        return narrow<T>(word < least ? 0.0f : widen(value) * scale);
    }
};

// out[i] ← rule(x[i], word i mod 4 of block i div 4)
template <typename T>
static __device__ __forceinline__ void dropout(const T* x, T* out, size_t n, Rule rule, unsigned long long seed) {
    constexpr unsigned int LENGTH = Pack<T>::LENGTH;
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
            for (unsigned int i = 0; i < LENGTH; i += WORDS) {
                const uint4 words = philox((first + p * step + i) / WORDS, seed);
                T* const values = packs[p].values + i;
                values[0] = rule.apply(values[0], words.x);
                values[1] = rule.apply(values[1], words.y);
                values[2] = rule.apply(values[2], words.z);
                values[3] = rule.apply(values[3], words.w);
            }
            store_pack(out + first + p * step, packs[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            const uint4 words = philox(i / WORDS, seed);
            const unsigned int word = i % WORDS == 0 ? words.x : i % WORDS == 1 ? words.y : i % WORDS == 2 ? words.z : words.w;
            out[i] = rule.apply(x[i], word);
        }
    }
}

#define DROPOUT(T, suffix)                                                                                             \
    extern "C" __global__ void dropout_##suffix(                                                                       \
        const T* x, T* out, size_t n, unsigned int least, float scale, unsigned long long seed) {                      \
        dropout(x, out, n, Rule{least, scale}, seed);                                                                  \
    }
FOR_FLOATS(DROPOUT)
