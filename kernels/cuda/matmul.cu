// Matrix products of row-major matrices, c ← a·b for a of m × k and b of k × n, one or many of them: element by element, and
// in tiles.
//
// The tiled kernel has a tile of c for each block and a patch of it for each thread, in registers. Slabs of a and b come to
// shared memory by asynchronous copies, several slabs ahead of their use. Both lie there as they do in memory: a thread reads
// four columns of its rows of a at a time, then four rows of its columns of b, all in vectors of 16 bytes.
//
// Where there are too few tiles for the device, several blocks share a tile, each with a range of k. They leave their sums
// in `partial`; the block that comes last adds them up, in the order of the ranges, so that results are always the same.

#include "common.cuh"

// One thread for each element of c. Launched with 16 × 16 threads, columns along x.
extern "C" __global__ void matmul_naive(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, size_t m, size_t n, size_t k) {
    const size_t row = static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    const size_t column = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (size_t p = 0; p < k; ++p) {
        sum += a[row * k + p] * b[p * n + column];
    }
    c[row * n + column] = sum;
}

// ---- asynchronous copies from global to shared memory

// Copies BYTES of which the first `bytes` exist; zeros stand for the rest.
template <unsigned int BYTES>
static __device__ __forceinline__ void copy_ahead(unsigned int to, const float* from, unsigned int bytes) {
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes));
    }
}

static __device__ __forceinline__ void end_of_group() { asm volatile("cp.async.commit_group;"); }

// Waits until at most GROUPS groups of copies are on their way.
template <unsigned int GROUPS> static __device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS));
}

// ---- the tiled kernel

// Lanes of a warp, over the patches of its part of a tile.
static constexpr unsigned int LANES_DOWN = 4;
static constexpr unsigned int LANES_ACROSS = 8;
// Floats in 16 bytes.
static constexpr unsigned int VECTOR = 4;

template <
    unsigned int TILE_ROWS, unsigned int TILE_COLUMNS, unsigned int SLAB, unsigned int ROWS, unsigned int COLUMNS,
    unsigned int AHEAD>
struct Tiling {
    // Rows and columns of c that a block computes, and the depth of a slab of a and b.
    static constexpr unsigned int tile_rows = TILE_ROWS, tile_columns = TILE_COLUMNS, slab = SLAB;
    // Rows and columns of c that a thread computes.
    static constexpr unsigned int rows = ROWS, columns = COLUMNS;
    // Slabs in shared memory: the one that is used, and those that are on their way.
    static constexpr unsigned int stages = AHEAD + 1;

    static constexpr unsigned int threads = TILE_ROWS / ROWS * (TILE_COLUMNS / COLUMNS);
    static constexpr unsigned int warp_rows = LANES_DOWN * ROWS;
    static constexpr unsigned int warp_columns = LANES_ACROSS * COLUMNS;
    static constexpr unsigned int warps_across = TILE_COLUMNS / warp_columns;
    // Padding keeps four neighbouring rows of a in different banks.
    static constexpr unsigned int a_stride = SLAB + VECTOR;
    static constexpr unsigned int a_length = TILE_ROWS * a_stride;
    static constexpr unsigned int stage_length = a_length + SLAB * TILE_COLUMNS;
    static constexpr unsigned int a_vectors = TILE_ROWS * SLAB / VECTOR;
    static constexpr unsigned int b_vectors = TILE_COLUMNS * SLAB / VECTOR;

    static_assert(TILE_ROWS % warp_rows == 0 && TILE_COLUMNS % warp_columns == 0, "warps must fill a tile");
    static_assert(COLUMNS % VECTOR == 0 && SLAB % VECTOR == 0, "patches and slabs are read in vectors");
    static_assert(a_vectors % threads == 0 && b_vectors % threads == 0, "copies must be shared evenly");
};

// What the blocks of a launch have in common.
struct Product {
    const float* a;
    const float* b;
    float* c;
    // Room for the sums of all blocks, where blocks share tiles.
    float* partial;
    size_t m, n, k;
    // Blocks that share a tile, and the depth of the range of each: a multiple of the slab.
    size_t splits, range;
};

// A vector of a row, of which columns at and beyond `end` do not exist, and none at all unless `exists`.
static __device__ __forceinline__ void copy_vector(
    unsigned int to, const float* row, size_t column, size_t end, bool exists, bool aligned, const float* somewhere) {
    if (aligned) {
        const bool inside = exists && column < end;
        copy_ahead<16>(to, inside ? row + column : somewhere, inside ? 16 : 0);
        return;
    }
#pragma unroll
    for (unsigned int i = 0; i < VECTOR; ++i) {
        const bool inside = exists && column + i < end;
        copy_ahead<4>(to + i * sizeof(float), inside ? row + column + i : somewhere, inside ? 4 : 0);
    }
}

// Starts copying a slab of a and b to a stage of shared memory.
template <typename Tile>
static __device__ __forceinline__ void copy_slab(
    const Product& product, unsigned int stage, size_t tile_row, size_t tile_column, size_t depth, size_t end,
    bool a_aligned, bool b_aligned) {
#pragma unroll
    for (unsigned int i = 0; i < Tile::a_vectors / Tile::threads; ++i) {
        const unsigned int vector = i * Tile::threads + threadIdx.x;
        const unsigned int row = vector / (Tile::slab / VECTOR);
        const unsigned int column = vector % (Tile::slab / VECTOR) * VECTOR;
        copy_vector(
            stage + (row * Tile::a_stride + column) * sizeof(float), product.a + (tile_row + row) * product.k,
            depth + column, end, tile_row + row < product.m, a_aligned, product.a);
    }
#pragma unroll
    for (unsigned int i = 0; i < Tile::b_vectors / Tile::threads; ++i) {
        const unsigned int vector = i * Tile::threads + threadIdx.x;
        const unsigned int row = vector / (Tile::tile_columns / VECTOR);
        const unsigned int column = vector % (Tile::tile_columns / VECTOR) * VECTOR;
        copy_vector(
            stage + (Tile::a_length + row * Tile::tile_columns + column) * sizeof(float),
            product.b + (depth + row) * product.n, tile_column + column, product.n, depth + row < end, b_aligned,
            product.b);
    }
}

// Adds the product of a slab to a thread's patch.
template <typename Tile>
static __device__ __forceinline__ void multiply_slab(
    const float* a, const float* b, float (&patch)[Tile::rows][Tile::columns]) {
#pragma unroll
    for (unsigned int depth = 0; depth < Tile::slab; depth += VECTOR) {
        float from_a[Tile::rows][VECTOR];
#pragma unroll
        for (unsigned int i = 0; i < Tile::rows; ++i) {
            const float* const row = a + i * LANES_DOWN * Tile::a_stride + depth;
            *reinterpret_cast<float4*>(from_a[i]) = *reinterpret_cast<const float4*>(row);
        }
#pragma unroll
        for (unsigned int p = 0; p < VECTOR; ++p) {
            float from_b[Tile::columns];
#pragma unroll
            for (unsigned int j = 0; j < Tile::columns; j += VECTOR) {
                const float* const columns = b + (depth + p) * Tile::tile_columns + j * LANES_ACROSS;
                *reinterpret_cast<float4*>(from_b + j) = *reinterpret_cast<const float4*>(columns);
            }
#pragma unroll
            for (unsigned int i = 0; i < Tile::rows; ++i) {
#pragma unroll
                for (unsigned int j = 0; j < Tile::columns; ++j) {
                    patch[i][j] += from_a[i][p] * from_b[j];
                }
            }
        }
    }
}

// How many blocks of a tile have come, where they share tiles. The last one leaves zero for the next launch.
static __device__ unsigned int matmul_arrived[4096];

// Where blocks share a tile: leaves the patch in `partial`, and says whether this block came last. If so, the patch is the
// sum of all.
template <typename Tile>
static __device__ __forceinline__ bool join_patches(
    const Product& product, size_t tile, unsigned int split, float (&patch)[Tile::rows][Tile::columns]) {
    __shared__ bool is_last;

    constexpr size_t BLOCK = Tile::threads * Tile::rows * Tile::columns;
    float* const first = product.partial + tile * product.splits * BLOCK + threadIdx.x * VECTOR;
#pragma unroll
    for (unsigned int v = 0; v < Tile::rows * Tile::columns / VECTOR; ++v) {
        const float4* const from = reinterpret_cast<const float4*>(&patch[0][0]) + v;
        *reinterpret_cast<float4*>(first + split * BLOCK + v * Tile::threads * VECTOR) = *from;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(&matmul_arrived[tile], 1) == product.splits - 1;
        if (is_last) {
            matmul_arrived[tile] = 0;
        }
    }
    __syncthreads();
    if (!is_last) {
        return false;
    }
    __threadfence();
#pragma unroll
    for (unsigned int v = 0; v < Tile::rows * Tile::columns / VECTOR; ++v) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (unsigned int s = 0; s < product.splits; ++s) {
            const float4 part = __ldcg(reinterpret_cast<const float4*>(first + s * BLOCK + v * Tile::threads * VECTOR));
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        reinterpret_cast<float4*>(&patch[0][0])[v] = sum;
    }
    return true;
}

// Writes a patch, whose first element is at a row and a column of c.
template <typename Tile>
static __device__ __forceinline__ void write_patch(
    const Product& product, size_t first_row, size_t first_column, const float (&patch)[Tile::rows][Tile::columns]) {
    const bool aligned = product.n % VECTOR == 0 && is_aligned(product.c);
#pragma unroll
    for (unsigned int i = 0; i < Tile::rows; ++i) {
        const size_t row = first_row + i * LANES_DOWN;
#pragma unroll
        for (unsigned int j = 0; j < Tile::columns; j += VECTOR) {
            const size_t column = first_column + j * LANES_ACROSS;
            if (row >= product.m || column >= product.n) {
                continue;
            }
            float* const to = product.c + row * product.n + column;
            if (aligned) {
                *reinterpret_cast<float4*>(to) = make_float4(patch[i][j], patch[i][j + 1], patch[i][j + 2], patch[i][j + 3]);
                continue;
            }
#pragma unroll
            for (unsigned int q = 0; q < VECTOR; ++q) {
                if (column + q < product.n) {
                    to[q] = patch[i][j + q];
                }
            }
        }
    }
}

// Blocks: tiles across, tiles down, and products times splits.
template <typename Tile> static __device__ __forceinline__ void multiply(Product product) {
    extern __shared__ __align__(16) float stages[];
    const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(stages));

    const size_t index = blockIdx.z / product.splits;
    const unsigned int split = blockIdx.z % product.splits;
    product.a += index * product.m * product.k;
    product.b += index * product.k * product.n;
    product.c += index * product.m * product.n;
    const size_t tile_row = static_cast<size_t>(blockIdx.y) * Tile::tile_rows;
    const size_t tile_column = static_cast<size_t>(blockIdx.x) * Tile::tile_columns;
    const size_t begin = split * product.range;
    const size_t end = begin + product.range < product.k ? begin + product.range : product.k;
    const size_t slabs = (end - begin + Tile::slab - 1) / Tile::slab;
    const bool a_aligned = product.k % VECTOR == 0 && is_aligned(product.a);
    const bool b_aligned = product.n % VECTOR == 0 && is_aligned(product.b);

    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int row = warp / Tile::warps_across * Tile::warp_rows + lane / LANES_ACROSS;
    const unsigned int column = warp % Tile::warps_across * Tile::warp_columns + lane % LANES_ACROSS * VECTOR;
    float patch[Tile::rows][Tile::columns] = {};

    const auto copy = [&](size_t slab) {
        if (slab < slabs) {
            const unsigned int stage = shared + slab % Tile::stages * Tile::stage_length * sizeof(float);
            copy_slab<Tile>(
                product, stage, tile_row, tile_column, begin + slab * Tile::slab, end, a_aligned, b_aligned);
        }
        // An empty group keeps the count right.
        end_of_group();
    };
#pragma unroll
    for (unsigned int slab = 0; slab < Tile::stages - 1; ++slab) {
        copy(slab);
    }
    for (size_t slab = 0; slab < slabs; ++slab) {
        wait_for_groups<Tile::stages - 2>();
        // This slab is there for all threads, and nobody uses the one before any more: its stage is free.
        __syncthreads();
        copy(slab + Tile::stages - 1);
        const float* const stage = stages + slab % Tile::stages * Tile::stage_length;
        multiply_slab<Tile>(stage + row * Tile::a_stride, stage + Tile::a_length + column, patch);
    }

    if (product.splits > 1) {
        const size_t tile = (index * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        if (!join_patches<Tile>(product, tile, split, patch)) {
            return;
        }
    }
    write_patch<Tile>(product, tile_row + row, tile_column + column, patch);
}

// An entry point for a tiling; `blocks` of them should fit into a multiprocessor.
#define MATMUL_TILED(name, blocks, ...)                                                                                \
    extern "C" __global__ void __launch_bounds__(Tiling<__VA_ARGS__>::threads, blocks) name(                           \
        const float* a, const float* b, float* c, float* partial, size_t m, size_t n, size_t k, size_t splits,        \
        size_t range) {                                                                                                \
        multiply<Tiling<__VA_ARGS__>>({a, b, c, partial, m, n, k, splits, range});                                     \
    }

MATMUL_TILED(matmul_tiled_256, 1, 128, 256, 16, 8, 16, 3)
MATMUL_TILED(matmul_tiled_128, 2, 128, 128, 16, 8, 8, 3)
MATMUL_TILED(matmul_tiled_64, 4, 64, 64, 16, 8, 4, 3)
MATMUL_TILED(matmul_tiled_32, 8, 32, 32, 16, 4, 4, 3)
#ifdef MATMUL_TRIALS
MATMUL_TILED(trial_256_8, 1, 128, 256, 8, 8, 16, 3)
MATMUL_TILED(trial_256_8x6, 1, 128, 256, 8, 8, 16, 5)
MATMUL_TILED(trial_256_32, 1, 128, 256, 32, 8, 16, 2)
MATMUL_TILED(trial_256w, 1, 256, 128, 16, 16, 8, 3)
MATMUL_TILED(trial_256w_8, 1, 256, 128, 8, 16, 8, 3)
MATMUL_TILED(trial_128_8, 2, 128, 128, 8, 8, 8, 4)
MATMUL_TILED(trial_128_2, 2, 128, 128, 16, 8, 8, 2)
MATMUL_TILED(trial_128_4, 2, 128, 128, 16, 8, 8, 4)
MATMUL_TILED(trial_128_16, 2, 128, 128, 16, 8, 16, 3)
MATMUL_TILED(trial_128w_16, 2, 128, 128, 16, 16, 8, 3)
MATMUL_TILED(trial_64_8, 3, 64, 128, 16, 8, 8, 3)
MATMUL_TILED(trial_64_16, 2, 64, 128, 16, 8, 16, 3)
MATMUL_TILED(trial_64_32, 4, 64, 64, 32, 8, 4, 2)
MATMUL_TILED(trial_64_44, 3, 64, 64, 16, 4, 4, 3)
MATMUL_TILED(trial_32_32, 8, 32, 32, 32, 4, 4, 2)
MATMUL_TILED(trial_32_32_64, 8, 32, 64, 16, 4, 4, 3)
#endif
