// c ← a·bᵗ for a of m rows of k and b of n rows of k, of 16-bit floats with sums in f32.

#include "matmul_plain.cuh"
#include "matmul_tensor.cuh"

template <typename T, typename Shape>
static __device__ __forceinline__ void half_product(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {
    const auto store = [=](const float (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group) {
        store_halves<T, Shape>(sums, corner, group, c, m, n);
    };
    tensor_product<T, float, Shape>(Matrix(a, m, k), Matrix(b, n, k), store);
}

#define MATMUL_HALF_TILE(T, suffix, tile, Shape)                                                                       \
    extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)                                                    \
        matmul_half_##tile##_##suffix(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {                    \
        half_product<T, Shape>(a, b, c, m, n, k);                                                                      \
    }
#define MATMUL_HALF(T, suffix)                                                                                         \
    MATMUL_HALF_TILE(T, suffix, wide, Wide)                                                                            \
    MATMUL_HALF_TILE(T, suffix, square, Square)                                                                        \
    MATMUL_HALF_TILE(T, suffix, slim, Slim)                                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        matmul_half_plain_##suffix(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {                       \
        plain_product<float>(                                                                                          \
            m, n, k, [=](size_t row, size_t p) { return widen(a[row * k + p]); },                                      \
            [=](size_t column, size_t p) { return widen(b[column * k + p]); },                                         \
            [=](size_t row, size_t column, float sum) { c[row * n + column] = narrow<T>(sum); });                      \
    }
MATMUL_HALF(__half, f16)
MATMUL_HALF(__nv_bfloat16, bf16)
