// Fourier transforms of power-of-two lengths, many columns of m numbers each.
//
// A block transforms a few columns. Every thread holds eight numbers and does a butterfly of eight per pass; between
// passes, which sort as they go (Stockham), numbers change threads in shared memory. Global memory is read once and
// written once. Number p + k·m/8 of a column is in register k of thread p before every pass and after the last one.

#include "common.cuh"

static constexpr unsigned int RADIX = 8;

// ---- complex numbers

static __device__ __forceinline__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
static __device__ __forceinline__ float2 minus(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
static __device__ __forceinline__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// a · −i
static __device__ __forceinline__ float2 quarter_turn(float2 a) { return make_float2(a.y, -a.x); }

// e^(−2πi·numerator/2^log_n)
static __device__ __forceinline__ float2 root(size_t numerator, unsigned int log_n) {
    float sine, cosine;
    sincospif(-2.0f * static_cast<float>(numerator) / static_cast<float>(1ull << log_n), &sine, &cosine);
    return make_float2(cosine, sine);
}

// x[k] ← x[k] · w^k
static __device__ __forceinline__ void turn(float2 (&x)[RADIX], float2 w) {
    const float2 w2 = times(w, w), w3 = times(w2, w), w4 = times(w2, w2);
    x[1] = times(x[1], w);
    x[2] = times(x[2], w2);
    x[3] = times(x[3], w3);
    x[4] = times(x[4], w4);
    x[5] = times(x[5], times(w4, w));
    x[6] = times(x[6], times(w3, w3));
    x[7] = times(x[7], times(w4, w3));
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

static __device__ __forceinline__ void butterfly(float2 (&x)[RADIX]) {
    const float HALF_ROOT = 0.70710678118654752f;
    butterfly(x[0], x[2], x[4], x[6]);
    butterfly(x[1], x[3], x[5], x[7]);
    x[3] = make_float2((x[3].x + x[3].y) * HALF_ROOT, (x[3].y - x[3].x) * HALF_ROOT);
    x[5] = quarter_turn(x[5]);
    x[7] = make_float2((x[7].y - x[7].x) * HALF_ROOT, -(x[7].x + x[7].y) * HALF_ROOT);
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    butterfly(x[4], x[5]);
    butterfly(x[6], x[7]);
    const float2 sorted[RADIX] = {x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]};
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        x[k] = sorted[k];
    }
}

// ---- where numbers are

// In global memory, where every distance is a power of two: its logarithm is here.
struct Layout {
    unsigned char stride; // from number to number of a column
    unsigned char inner;  // columns of a matrix
    unsigned char outer;  // from matrix to matrix
    unsigned char unused;

    __device__ __forceinline__ size_t place(size_t column, unsigned int number) const {
        const size_t matrix = column >> inner;
        return (matrix << outer) + (column - (matrix << inner)) + (static_cast<size_t>(number) << stride);
    }
};

// A thread's column of the block, and its place in it: neighbours in memory are neighbouring threads.
struct Place {
    unsigned int column, p;

    __device__ __forceinline__ Place(bool by_columns, unsigned int log_columns, unsigned int log_m) {
        const unsigned int log_threads = log_m - 3;
        column = by_columns ? threadIdx.x & ((1u << log_columns) - 1) : threadIdx.x >> log_threads;
        p = by_columns ? threadIdx.x >> log_columns : threadIdx.x & ((1u << log_threads) - 1);
    }
};

// In shared memory: the low bits are mixed with those above them, so that threads a power of two apart use different banks.
static __device__ __forceinline__ unsigned int banked(unsigned int index) {
    const unsigned int high = index >> 4;
    return index ^ ((high ^ (high << 1)) & 15);
}

// ---- kernels

// out ← the transform of columns of 2^log_m ≥ 8 numbers; with log_n, number k of column j is turned by e^(−2πi·jk/2^log_n).
// Blocks of 2^log_columns · 2^log_m / 8 threads, and 8 bytes of shared memory per number.
extern "C" __global__ void __launch_bounds__(1024)
    fft_columns(const float2* in, float2* out, unsigned int log_m, unsigned int log_columns, unsigned int log_n, Layout from,
                Layout to) {
    extern __shared__ float2 numbers[];
    const size_t first = static_cast<size_t>(blockIdx.x) << log_columns;
    const unsigned int eighth = 1u << (log_m - 3);
    float2 x[RADIX];
    Place place(from.stride > 0, log_columns, log_m);
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        x[k] = in[from.place(first + place.column, place.p + k * eighth)];
    }
    unsigned int log_done = 0;
    for (; log_done + 3 <= log_m; log_done += 3) {
        butterfly(x);
        if (log_done + 3 == log_m) {
            break;
        }
        // Numbers q + 2^log_done·(8·group + k) go on, turned by the k-th power of their group's root.
        const unsigned int q = place.p & ((1u << log_done) - 1), group = place.p >> log_done;
        turn(x, root(static_cast<size_t>(group) << log_done, log_m));
        const bool by_columns = to.stride > 0;
        const unsigned int number_step = by_columns ? log_columns : 0, column_step = by_columns ? 0 : log_m;
        __syncthreads();
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            const unsigned int number = q + ((RADIX * group + k) << log_done);
            numbers[banked((number << number_step) + (place.column << column_step))] = x[k];
        }
        __syncthreads();
        place = Place(by_columns, log_columns, log_m);
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            const unsigned int number = place.p + k * eighth;
            x[k] = numbers[banked((number << number_step) + (place.column << column_step))];
        }
    }
    // What is left is a pass of two or four, whose numbers are in this thread.
    if (log_m - log_done == 1) {
        butterfly(x[0], x[4]);
        butterfly(x[1], x[5]);
        butterfly(x[2], x[6]);
        butterfly(x[3], x[7]);
    } else if (log_m - log_done == 2) {
        butterfly(x[0], x[2], x[4], x[6]);
        butterfly(x[1], x[3], x[5], x[7]);
    }
    const size_t column = first + place.column;
    if (log_n > 0) {
        turn(x, root(column * eighth, log_n));
        const float2 start = root(column * place.p, log_n);
#pragma unroll
        for (unsigned int k = 0; k < RADIX; ++k) {
            x[k] = times(x[k], start);
        }
    }
#pragma unroll
    for (unsigned int k = 0; k < RADIX; ++k) {
        out[to.place(column, place.p + k * eighth)] = x[k];
    }
}

// The same for columns of 1, 2 or 4 numbers, one thread for each column.
extern "C" __global__ void fft_short_columns(const float2* in, float2* out, unsigned int log_m, size_t columns, Layout from,
                                             Layout to) {
    const size_t column = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    float2 x[4];
#pragma unroll
    for (unsigned int k = 0; k < 4; ++k) {
        x[k] = k < 1u << log_m ? in[from.place(column, k)] : make_float2(0.0f, 0.0f);
    }
    if (log_m == 1) {
        butterfly(x[0], x[1]);
    } else if (log_m == 2) {
        butterfly(x[0], x[1], x[2], x[3]);
    }
#pragma unroll
    for (unsigned int k = 0; k < 4; ++k) {
        if (k < 1u << log_m) {
            out[to.place(column, k)] = x[k];
        }
    }
}
