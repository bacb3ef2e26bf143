// Dropout, bound by memory if the random words are made while the data is on its way: every thread asks for PACKS vectors
// of 16 bytes, and computes the words before it looks at them.
//
// Launched with as many threads as it takes to cover n at PACKS packs each, in blocks of any size.

#include "common.cuh"

static constexpr unsigned int PACKS = 2;

// Words that Philox makes of a counter.
static constexpr unsigned int WORDS = 4;

// The same round of Philox4x32-10 (Salmon and others, 2011) for several counters at once, so that its key is made once.
template <unsigned int COUNT>
static __device__ __forceinline__ void philox_round(uint4 (&counters)[COUNT], uint2 key) {
#pragma unroll
    for (unsigned int c = 0; c < COUNT; ++c) {
        const unsigned long long left = 0xd2511f53ull * counters[c].x;
        const unsigned long long right = 0xcd9e8d57ull * counters[c].z;
        counters[c] = make_uint4(
            static_cast<unsigned int>(right >> 32) ^ counters[c].y ^ key.x, static_cast<unsigned int>(right),
            static_cast<unsigned int>(left >> 32) ^ counters[c].w ^ key.y, static_cast<unsigned int>(left));
    }
}

// The words of COUNT blocks.
template <unsigned int COUNT>
static __device__ __forceinline__ void philox(
    const size_t (&blocks)[COUNT], unsigned long long seed, uint4 (&words)[COUNT]) {
#pragma unroll
    for (unsigned int c = 0; c < COUNT; ++c) {
        words[c] = make_uint4(static_cast<unsigned int>(blocks[c]), static_cast<unsigned int>(blocks[c] >> 32), 0, 0);
    }
    uint2 key = make_uint2(static_cast<unsigned int>(seed), static_cast<unsigned int>(seed >> 32));
#pragma unroll
    for (unsigned int round = 0; round < 10; ++round) {
        philox_round(words, key);
        key.x += 0x9e3779b9u;
        key.y += 0xbb67ae85u;
    }
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
        constexpr unsigned int BLOCKS = LENGTH / WORDS;
        Pack<T> packs[PACKS];
        size_t blocks[PACKS * BLOCKS];
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
            packs[p] = load_pack(x + first + p * step);
#pragma unroll
            for (unsigned int b = 0; b < BLOCKS; ++b) {
                blocks[p * BLOCKS + b] = (first + p * step) / WORDS + b;
            }
        }
        uint4 words[PACKS * BLOCKS];
        philox(blocks, seed, words);
#pragma unroll
        for (unsigned int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (unsigned int b = 0; b < BLOCKS; ++b) {
                const uint4 four = words[p * BLOCKS + b];
                T* const values = packs[p].values + b * WORDS;
                values[0] = rule.apply(values[0], four.x);
                values[1] = rule.apply(values[1], four.y);
                values[2] = rule.apply(values[2], four.z);
                values[3] = rule.apply(values[3], four.w);
            }
            store_pack(out + first + p * step, packs[p]);
        }
        return;
    }
    for (unsigned int p = 0; p < PACKS; ++p) {
        for (size_t i = first + p * step; i < first + p * step + LENGTH && i < n; ++i) {
            uint4 words[1];
            philox<1>({i / WORDS}, seed, words);
            const unsigned int four[WORDS] = {words[0].x, words[0].y, words[0].z, words[0].w};
            out[i] = rule.apply(x[i], four[i % WORDS]);
        }
    }
}

#define DROPOUT(T, suffix)                                                                                             \
    extern "C" __global__ void dropout_##suffix(                                                                       \
        const T* x, T* out, size_t n, unsigned int least, float scale, unsigned long long seed) {                      \
        dropout(x, out, n, Rule{least, scale}, seed);                                                                  \
    }
FOR_FLOATS(DROPOUT)
