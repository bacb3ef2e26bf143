// Products of 8-bit floats (e4m3) with factors for blocks of the operands, in three versions that differ in how data and
// factors travel, and with one factor for each operand.
//
// The matrix units add 8-bit products with about 14 bits of mantissa. With factors for blocks, sums of at most 128 products
// are therefore added in f32, each with the factor of its blocks, as DeepSeek-V3's technical report does (section 3.3.2).

#include "matmul_plain.cuh"
#include "matmul_tensor.cuh"

using Fp8 = __nv_fp8_e4m3;

// A matrix with one factor for every block of `quant` × `quant` elements.
struct Scaled {
    const Fp8* data;
    const float* scales;
    size_t rows;
    size_t columns;
    size_t quant;

    __device__ Matrix matrix() const { return Matrix(data, rows, columns); }
    __device__ size_t blocks_of_row() const { return (columns + quant - 1) / quant; }
    // The factors of the blocks that a row is in; those of the last row for rows behind it.
    __device__ const float* scales_of(size_t row) const { return scales + min(row, rows - 1) / quant * blocks_of_row(); }
    __device__ float operator()(size_t row, size_t column) const {
        return static_cast<float>(data[row * columns + column]) * scales_of(row)[column / quant];
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The factor of a group's rows and a tile's columns at every stage, read when it is needed.
struct ScalesInMemory {
    const float* left;
    const float* right;
    unsigned int quant;

    __device__ __forceinline__ float operator()(unsigned int stage) const {
        const unsigned int block = stage * STAGE_BYTES / quant;
        return left[block] * right[block];
    }
};

// The same, multiplied once and kept.
struct ScalesInShared {
    const float* products;
    unsigned int quant;

    __device__ __forceinline__ float operator()(unsigned int stage) const { return products[stage * STAGE_BYTES / quant]; }
};

// sums ← sums + factor · (a·bᵗ of one stage), for all rows of a group; `done` is called when the stage is needed no more.
template <typename Shape, typename Done>
static __device__ __forceinline__ void add_stage(
    float (&sums)[Shape::HALVES][Shape::SUMS], unsigned int tile, unsigned int group, float factor, Done done) {
#pragma unroll
    for (unsigned int half = 0; half < Shape::HALVES; ++half) {
        float products[Shape::SUMS];
        begin_products();
        multiply_stage<Fp8, Shape>(products, tile, group * Shape::GROUP_ROWS + half * ROWS_AT_ONCE, false);
        end_of_products();
        wait_for_products<0>(products);
        if (half == Shape::HALVES - 1) {
            done();
        }
#pragma unroll
        for (unsigned int i = 0; i < Shape::SUMS; ++i) {
            sums[half][i] += factor * products[i];
        }
    }
}

template <typename Shape>
static __device__ __forceinline__ void store_sums(
    const float (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group, float* c, size_t m, size_t n) {
    for_pairs<Shape>(sums, corner, group, [=](unsigned int row, unsigned int column, float first, float second) {
        store_pair(c, m, n, row, column, first, second);
    });
}

// Two slots: the next stage is read to registers while this one is multiplied, and then stored to the other slot.
template <typename Shape> static __device__ __forceinline__ void double_buffered(const Scaled& a, const Scaled& b, float* c) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const unsigned int slots = shared_address(shared);
    const Corner corner = corner_of_block<Shape>(a.rows, b.rows);
    const unsigned int stages = a.matrix().stages();
    const unsigned int group = threadIdx.x / GROUP;
    const Copiers<Shape, MULTIPLIERS * GROUP> copiers(a.matrix(), b.matrix(), corner, threadIdx.x);
    const ScalesInMemory scales{
        a.scales_of(corner.row + group * Shape::GROUP_ROWS), b.scales_of(corner.column), static_cast<unsigned int>(a.quant)};
    float sums[Shape::HALVES][Shape::SUMS] = {};
    auto chunks = copiers.load(0);
    for (unsigned int stage = 0; stage < stages; ++stage) {
        const unsigned int slot = slots + stage % 2 * Shape::BYTES;
        copiers.store(chunks, slot);
        show_to_matrix_units();
        __syncthreads();
        chunks = copiers.load(stage + 1);
        add_stage<Shape>(sums, slot, group, scales(stage), [] {});
    }
    store_sums<Shape>(sums, corner, group, c, a.rows, b.rows);
}

// Several slots: stages are on their way while one is multiplied.
template <typename Shape> static __device__ __forceinline__ void pipelined(const Scaled& a, const Scaled& b, float* c) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const unsigned int slots = shared_address(shared);
    const Corner corner = corner_of_block<Shape>(a.rows, b.rows);
    const unsigned int stages = a.matrix().stages();
    const unsigned int group = threadIdx.x / GROUP;
    const Copiers<Shape, MULTIPLIERS * GROUP> copiers(a.matrix(), b.matrix(), corner, threadIdx.x);
    const ScalesInMemory scales{
        a.scales_of(corner.row + group * Shape::GROUP_ROWS), b.scales_of(corner.column), static_cast<unsigned int>(a.quant)};
    float sums[Shape::HALVES][Shape::SUMS] = {};
    constexpr unsigned int AHEAD = Shape::STAGES - 1;
    for (unsigned int stage = 0; stage < AHEAD; ++stage) {
        copiers.copy(slots + stage * Shape::BYTES, stage);
    }
    for (unsigned int stage = 0; stage < stages; ++stage) {
        wait_for_copies<AHEAD - 1>();
        show_to_matrix_units();
        // Everybody is done with the stage before this one: its slot can be filled.
        __syncthreads();
        copiers.copy(slots + (stage + AHEAD) % Shape::STAGES * Shape::BYTES, stage + AHEAD);
        add_stage<Shape>(sums, slots + stage % Shape::STAGES * Shape::BYTES, group, scales(stage), [] {});
    }
    store_sums<Shape>(sums, corner, group, c, a.rows, b.rows);
}

// One group of threads copies, so that those who multiply need not wait for each other; factors are in shared memory.
template <typename Shape> static __device__ __forceinline__ void specialised(const Scaled& a, const Scaled& b, float* c) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const Slots<Shape> slots{shared_address(shared)};
    const Corner corner = corner_of_block<Shape>(a.rows, b.rows);
    const unsigned int blocks = a.blocks_of_row();
    const unsigned int group = threadIdx.x / GROUP;
    float* products = reinterpret_cast<float*>(shared + Slots<Shape>::BYTES) + group * blocks;
    if (group < MULTIPLIERS) {
        const float* left = a.scales_of(corner.row + group * Shape::GROUP_ROWS);
        const float* right = b.scales_of(corner.column);
        for (unsigned int block = threadIdx.x % GROUP; block < blocks; block += GROUP) {
            products[block] = left[block] * right[block];
        }
    }
    slots.start();
    const unsigned int stages = a.matrix().stages();
    if (group == MULTIPLIERS) {
        few_registers();
        fill_slots(slots, a.matrix(), b.matrix(), corner, stages);
        return;
    }
    many_registers();
    const ScalesInShared scales{products, static_cast<unsigned int>(a.quant)};
    float sums[Shape::HALVES][Shape::SUMS] = {};
    for (unsigned int stage = 0; stage < stages; ++stage) {
        wait_for_round(slots.filled(stage), slots.parity(stage));
        add_stage<Shape>(sums, slots.tile(stage), group, scales(stage), [=] { give_back(slots, stage); });
    }
    store_sums<Shape>(sums, corner, group, c, a.rows, b.rows);
}

#define ON_HOPPER(product) product
#else
#define ON_HOPPER(product)
#endif

// Two slots of half the bytes, and the tile with which a group has as many sums as registers allow beside its products.
using Buffers = Tile<1, 128, 2>;
using Tall = Tile<2, 128, 4>;

#define MATMUL_FP8(name, threads, product)                                                                             \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                                           \
        name(const Fp8* a, const Fp8* b, const float* scale_a, const float* scale_b, float* c, size_t m, size_t n,     \
             size_t k, size_t quant) {                                                                                 \
        const Scaled left{a, scale_a, m, k, quant};                                                                    \
        const Scaled right{b, scale_b, n, k, quant};                                                                   \
        product;                                                                                                       \
    }
MATMUL_FP8(matmul_fp8_double_buffered, MULTIPLIERS * GROUP, ON_HOPPER(double_buffered<Buffers>(left, right, c)))
MATMUL_FP8(matmul_fp8_pipelined, MULTIPLIERS * GROUP, ON_HOPPER(pipelined<Square>(left, right, c)))
MATMUL_FP8(matmul_fp8_specialised_tall, TENSOR_THREADS, ON_HOPPER(specialised<Tall>(left, right, c)))
MATMUL_FP8(matmul_fp8_specialised_square, TENSOR_THREADS, ON_HOPPER(specialised<Square>(left, right, c)))
MATMUL_FP8(matmul_fp8_plain, 256, plain_product<float>(m, n, k, left, right, [=](size_t row, size_t column, float sum) {
               c[row * n + column] = sum;
           }))

// ---- one factor for each operand

template <typename Shape>
static __device__ __forceinline__ void scaled_product(
    const Fp8* a, const Fp8* b, const float* scale_a, const float* scale_b, float* c, size_t m, size_t n, size_t k) {
    const auto store = [=](const float (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group) {
        const float scale = *scale_a * *scale_b;
        for_pairs<Shape>(sums, corner, group, [=](size_t row, size_t column, float first, float second) {
            store_pair(c, m, n, row, column, first * scale, second * scale);
        });
    };
    tensor_product<Fp8, float, Shape>(Matrix(a, m, k), Matrix(b, n, k), store);
}

#define MATMUL_FP8_TENSOR(tile, Shape)                                                                                 \
    extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)                                                    \
        matmul_fp8_tensor_##tile(const Fp8* a, const Fp8* b, const float* scale_a, const float* scale_b, float* c,     \
                                 size_t m, size_t n, size_t k) {                                                       \
        scaled_product<Shape>(a, b, scale_a, scale_b, c, m, n, k);                                                     \
    }
MATMUL_FP8_TENSOR(wide, Wide)
MATMUL_FP8_TENSOR(square, Square)
MATMUL_FP8_TENSOR(slim, Slim)

extern "C" __global__ void __launch_bounds__(256) matmul_fp8_tensor_plain(
    const Fp8* a, const Fp8* b, const float* scale_a, const float* scale_b, float* c, size_t m, size_t n, size_t k) {
    plain_product<float>(
        m, n, k, [=](size_t row, size_t p) { return static_cast<float>(a[row * k + p]); },
        [=](size_t column, size_t p) { return static_cast<float>(b[column * k + p]); },
        [=](size_t row, size_t column, float sum) { c[row * n + column] = sum * *scale_a * *scale_b; });
}
