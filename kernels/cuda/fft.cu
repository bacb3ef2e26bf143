// Fourier transforms of power-of-two lengths, many columns of m numbers each.
//
// A block transforms a few columns. Every thread holds sixteen numbers and does a butterfly of sixteen per pass; between
// passes, which sort as they go (Stockham), numbers change threads in shared memory. Global memory is read once and
// written once. Number p + k·m/16 of a column is in register k of thread p before every pass and after the last one.

#include "common.cuh"

static constexpr unsigned int LOG_RADIX = 4;
static constexpr unsigned int RADIX = 1 << LOG_RADIX;

// ---- complex numbers

static __device__ __forceinline__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
static __device__ __forceinline__ float2 minus(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
static __device__ __forceinline__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// a · −i
static __device__ __forceinline__ float2 quarter_turn(float2 a) { return make_float2(a.y, -a.x); }

// e^(−2πi·numerator/2^log_n)
static __device__ __forceinline__ float2 root(unsigned int numerator, unsigned int log_n) {
    float sine, cosine;
    const float minus_two_over_n = -__uint_as_float((128 - log_n) << 23);
    sincospif(static_cast<float>(numerator) * minus_two_over_n, &sine, &cosine);
    return make_float2(cosine, sine);
}

// x[k] ← x[k] · w^k; each power is the product of two about half as large
static __device__ __forceinline__ void turn(float2 (&x)[RADIX], float2 w) {
    float2 powers[RADIX];
    powers[1] = w;
#pragma unroll
    for (unsigned int k = 1; k < RADIX; ++k) {
        if (k > 1) {
            powers[k] = times(powers[k / 2], powers[k - k / 2]);
        }
        x[k] = times(x[k], powers[k]);
    }
}

// ---- butterflies, in place and in order

static __device__ __forceinline__ void butterfly(float2& a, float2& b) {
    const float2 sum = plus(a, b);
    b = minus(a, b);
    a = sum;
}

static __device__ __forceinline__ void butterfly(float2& a, float2& b, float2& c, float2& d) {
    butterfly(a, c);
    butterfly(b, d);
    d = quarter_turn(d);
    butterfly(a, b);
    butterfly(c, d);
    const float2 second = c;
    c = b;
    b = second;
}

// e^(−2πi·eighths/8) · a for 1, 2 and 3 eighths of a turn
static __device__ __forceinline__ float2 eighths(float2 a, unsigned int eighths) {
    const float HALF_ROOT = 0.70710678118654752f;
    switch (eighths) {
    case 1: return make_float2((a.x + a.y) * HALF_ROOT, (a.y - a.x) * HALF_ROOT);
    case 2: return quarter_turn(a);
    case 3: return make_float2((a.y - a.x) * HALF_ROOT, -(a.x + a.y) * HALF_ROOT);
    default: return a;
    }
}

// Of eight numbers that are STEP apart.
template <unsigned int STEP> static __device__ __forceinline__ void butterfly_of_eight(float2* x) {
    butterfly(x[0], x[2 * STEP], x[4 * STEP], x[6 * STEP]);
    butterfly(x[STEP], x[3 * STEP], x[5 * STEP], x[7 * STEP]);
    float2 results[8];
#pragma unroll
    for (unsigned int k = 0; k < 4; ++k) {
        const float2 odd = eighths(x[(2 * k + 1) * STEP], k);
        results[k] = plus(x[2 * k * STEP], odd);
        results[k + 4] = minus(x[2 * k * STEP], odd);
    }
#pragma unroll
    for (unsigned int k = 0; k < 8; ++k) {
        x[k * STEP] = results[k];
    }
}

// Four butterflies of four, turned by sixteenths, and four more.
static __device__ __forceinline__ void butterfly_of_sixteen(float2 (&x)[RADIX]) {
    const float COSINE = 0.92387953251128674f, SINE = 0.38268343236508977f; // of a sixteenth
#pragma unroll
    for (unsigned int j = 0; j < 4; ++j) {
        butterfly(x[j], x[j + 4], x[j + 8], x[j + 12]);
    }
    x[5] = times(x[5], make_float2(COSINE, -SINE));
    x[9] = eighths(x[9], 1);
    x[13] = times(x[13], make_float2(SINE, -COSINE));
    x[6] = eighths(x[6], 1);
    x[10] = eighths(x[10], 2);
    x[14] = eighths(x[14], 3);
    x[7] = times(x[7], make_float2(SINE, -COSINE));
    x[11] = eighths(x[11], 3);
    x[15] = times(x[15], make_float2(-COSINE, SINE));
    float2 results[RADIX];
#pragma unroll
    for (unsigned int k = 0; k < 4; ++k) {
        butterfly(x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]);
#pragma unroll
        for (unsigned int j = 0; j < 4; ++j) {
            results[k + 4 * j] = x[4 * k + j];
        }
    }
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        x[k] = results[k];
    }
}

// ---- where numbers are

// In global memory, where every distance is a power of two: its logarithm is here.
struct Layout {
    unsigned char stride; // from number to number of a column
    unsigned char inner;  // columns of a matrix
    unsigned char outer;  // from matrix to matrix
    unsigned char unused;

    __device__ __forceinline__ size_t place(unsigned int column, unsigned int number) const {
        const unsigned int matrix = column >> inner;
        return (static_cast<size_t>(matrix) << outer) + (column - (matrix << inner)) +
               (static_cast<size_t>(number) << stride);
    }
};

// A thread's column of the block, and its place in it: neighbours in memory are neighbouring threads.
template <unsigned int LOG_M> struct Place {
    unsigned int column, p;

    __device__ __forceinline__ Place(bool by_columns, unsigned int log_columns) {
        constexpr unsigned int LOG_THREADS = LOG_M - LOG_RADIX;
        column = by_columns ? threadIdx.x & ((1u << log_columns) - 1) : threadIdx.x >> LOG_THREADS;
        p = by_columns ? threadIdx.x >> log_columns : threadIdx.x & ((1u << LOG_THREADS) - 1);
    }
};

// In shared memory there is a gap after every 16 numbers, so that threads a power of two apart use different banks. The
// place of a sum is the sum of the places where the summands have no bits in common.
static __device__ __forceinline__ constexpr unsigned int spaced(unsigned int number) { return number + (number >> 4); }

// From column to column in shared memory, with a gap that depends on how many there are.
template <unsigned int LOG_M> static __device__ __forceinline__ unsigned int column_step(unsigned int log_columns) {
    return spaced(1u << LOG_M) + (16 >> log_columns);
}

// ---- kernels

// One pass and the exchange after it; DONE is the logarithm of the product of all radices before.
template <unsigned int LOG_M, unsigned int DONE>
static __device__ __forceinline__ void pass(float2 (&x)[RADIX], float2* numbers, Place<LOG_M>& place, bool by_columns,
                                            unsigned int log_columns) {
    constexpr unsigned int LEFT = LOG_M - DONE;
    if constexpr (LEFT == 1) {
#pragma unroll
        for (unsigned int i = 0; i < 8; ++i) {
            butterfly(x[i], x[i + 8]);
        }
    } else if constexpr (LEFT == 2) {
#pragma unroll
        for (unsigned int i = 0; i < 4; ++i) {
            butterfly(x[i], x[i + 4], x[i + 8], x[i + 12]);
        }
    } else if constexpr (LEFT == 3) {
        butterfly_of_eight<2>(x);
        butterfly_of_eight<2>(x + 1);
    } else if constexpr (LEFT >= 4) {
        butterfly_of_sixteen(x);
    }
    if constexpr (LEFT > LOG_RADIX) {
        // Numbers q + 2^DONE·(16·group + k) go on, turned by the k-th power of their group's root.
        const unsigned int q = place.p & ((1u << DONE) - 1), group = place.p >> DONE;
        turn(x, root(group << DONE, LOG_M));
        if (DONE > 0) {
            __syncthreads();
        }
        float2* to = numbers + place.column * column_step<LOG_M>(log_columns) + spaced(q + (group << (DONE + LOG_RADIX)));
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            to[spaced(k << DONE)] = x[k];
        }
        __syncthreads();
        place = Place<LOG_M>(by_columns, log_columns);
        const float2* from = numbers + place.column * column_step<LOG_M>(log_columns) + spaced(place.p);
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            x[k] = from[spaced(k << (LOG_M - LOG_RADIX))];
        }
        pass<LOG_M, DONE + LOG_RADIX>(x, numbers, place, by_columns, log_columns);
    }
}

// out ← the transform of columns of 2^LOG_M ≥ 16 numbers; with log_n, number k of column j is turned by e^(−2πi·jk/2^log_n).
template <unsigned int LOG_M>
static __device__ __forceinline__ void columns(const float2* in, float2* out, unsigned int log_columns, unsigned int log_n,
                                               Layout from, Layout to) {
    extern __shared__ float2 numbers[];
    constexpr unsigned int STEP = 1u << (LOG_M - LOG_RADIX);
    const unsigned int first = blockIdx.x << log_columns;
    Place<LOG_M> place(from.stride > 0, log_columns);
    float2 x[RADIX];
    in += from.place(first + place.column, place.p);
    const size_t in_step = static_cast<size_t>(STEP) << from.stride;
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        x[k] = in[k * in_step];
    }
    pass<LOG_M, 0>(x, numbers, place, to.stride > 0, log_columns);
    const unsigned int column = first + place.column;
    if (log_n > 0) {
        const float2 start = root(column * place.p, log_n);
        turn(x, root(column * STEP, log_n));
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            x[k] = times(x[k], start);
        }
    }
    out += to.place(column, place.p);
    const size_t out_step = static_cast<size_t>(STEP) << to.stride;
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        out[k * out_step] = x[k];
    }
}

// Blocks of 2^log_columns · 2^LOG_M / 16 threads; shared memory for as many columns with their gaps.
#define COLUMNS(LOG_M)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        fft_columns_##LOG_M(const float2* in, float2* out, unsigned int log_columns, unsigned int log_n, Layout from,  \
                            Layout to) {                                                                               \
        columns<LOG_M>(in, out, log_columns, log_n, from, to);                                                         \
    }
COLUMNS(4)
COLUMNS(5)
COLUMNS(6)
COLUMNS(7)
COLUMNS(8)
COLUMNS(9)
COLUMNS(10)
COLUMNS(11)
COLUMNS(12)
COLUMNS(13)

// The same for columns of 1, 2, 4 or 8 numbers, one thread for each column.
extern "C" __global__ void fft_short_columns(const float2* in, float2* out, unsigned int log_m, unsigned int columns,
                                             Layout from, Layout to) {
    const unsigned int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    float2 x[8];
#pragma unroll
    for (unsigned int k = 0; k < 8; ++k) {
        x[k] = k < 1u << log_m ? in[from.place(column, k)] : make_float2(0.0f, 0.0f);
    }
    if (log_m == 1) {
        butterfly(x[0], x[1]);
    } else if (log_m == 2) {
        butterfly(x[0], x[1], x[2], x[3]);
    } else if (log_m == 3) {
        butterfly_of_eight<1>(x);
    }
#pragma unroll
    for (unsigned int k = 0; k < 8; ++k) {
        if (k < 1u << log_m) {
            out[to.place(column, k)] = x[k];
        }
    }
}
