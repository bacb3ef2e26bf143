// c ← (a·bᵗ) · scale_a · scale_bᵗ for a of m rows of k and b of n rows of k, of 8-bit integers with exact sums; every row of
// a and of b has a factor.

#include "matmul_plain.cuh"
#include "matmul_tensor.cuh"

template <typename Shape>
static __device__ __forceinline__ void int8_product(
    const signed char* a, const signed char* b, const float* scale_a, const float* scale_b, float* c, size_t m, size_t n, size_t k) {
    const auto store = [=](const int (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group) {
        for_pairs<Shape>(sums, corner, group, [=](size_t row, size_t column, int first, int second) {
            // Read as constants: otherwise every store to c might have changed them, and each would be read 64 times.
            const float scale = row < m ? __ldg(scale_a + row) : 0.0f;
            const float left = column < n ? __ldg(scale_b + column) : 0.0f;
            const float right = column + 1 < n ? __ldg(scale_b + column + 1) : 0.0f;
            store_pair(c, m, n, row, column, first * scale * left, second * scale * right);
        });
    };
    tensor_product<signed char, int, Shape>(Matrix(a, m, k), Matrix(b, n, k), store);
}

#define MATMUL_INT8(tile, Shape)                                                                                       \
    extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)                                                    \
        matmul_int8_##tile(const signed char* a, const signed char* b, const float* scale_a, const float* scale_b,     \
                           float* c, size_t m, size_t n, size_t k) {                                                   \
        int8_product<Shape>(a, b, scale_a, scale_b, c, m, n, k);                                                       \
    }
MATMUL_INT8(wide, Wide)
MATMUL_INT8(square, Square)
MATMUL_INT8(slim, Slim)

extern "C" __global__ void __launch_bounds__(256) matmul_int8_plain(
    const signed char* a, const signed char* b, const float* scale_a, const float* scale_b, float* c, size_t m, size_t n, size_t k) {
    plain_product<int>(
        m, n, k, [=](size_t row, size_t p) { return static_cast<int>(a[row * k + p]); },
        [=](size_t column, size_t p) { return static_cast<int>(b[column * k + p]); },
        [=](size_t row, size_t column, int sum) { c[row * n + column] = sum * scale_a[row] * scale_b[column]; });
}

// c ← sums · scale_a · scale_bᵗ, for sums that a library made: a row of blocks for every row.
extern "C" __global__ void matmul_int8_scale(const int* sums, const float* scale_a, const float* scale_b, float* c, size_t n) {
    const size_t row = blockIdx.x;
    const size_t column = static_cast<size_t>(blockIdx.y) * blockDim.x + threadIdx.x;
    if (column < n) {
        c[row * n + column] = sums[row * n + column] * scale_a[row] * scale_b[column];
    }
}
