// Matrix products of row-major matrices, c ← a·b for a of m × k and b of k × n, one or many of them: element by element, and
// in tiles.
//
// The tiled kernel has a tile of c for each block and a patch of it for each thread, in registers. Slabs of a and b come to
// shared memory by asynchronous copies, several slabs ahead of their use. That of a is turned over on its way, so that a
// thread reads neighbouring rows of a, as it reads neighbouring columns of b, in vectors of 16 bytes.
//
// Where there are too few tiles for the device, several blocks share a tile, each with a range of k. They leave their sums
// in `partial`; the block that comes last adds them up, in the order of the ranges, so that results are always the same.

#include "copies.cuh"

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

// ---- the tiled kernel

// Lanes of a warp, over the patches of its part of a tile.
static constexpr unsigned int LANES_DOWN = 4;
static constexpr unsigned int LANES_ACROSS = 8;
// Floats in 16 bytes.
static constexpr unsigned int VECTOR = 4;
// Neighbouring columns of a that a warp copies at a time, as many floats as a sector of memory has.
static constexpr unsigned int SECTOR = 8;

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
    static constexpr unsigned int warps = threads / WARP;
    static constexpr unsigned int warp_rows = LANES_DOWN * ROWS;
    static constexpr unsigned int warp_columns = LANES_ACROSS * COLUMNS;
    static constexpr unsigned int warps_across = TILE_COLUMNS / warp_columns;
    // A slab of a has a row for each of its columns. Padding brings what a warp copies to different banks.
    static constexpr unsigned int a_stride = TILE_ROWS + VECTOR;
    static constexpr unsigned int a_length = SLAB * a_stride;
    static constexpr unsigned int stage_length = a_length + SLAB * TILE_COLUMNS;
    // Rows of a and b that all threads copy at a time.
    static constexpr unsigned int a_rows = threads / SLAB;
    static constexpr unsigned int b_rows = threads * VECTOR / TILE_COLUMNS;

    static_assert(TILE_ROWS % warp_rows == 0 && TILE_COLUMNS % warp_columns == 0, "warps must fill a tile");
    static_assert(ROWS % VECTOR == 0 && COLUMNS % VECTOR == 0, "patches are read in vectors");
    static_assert(SLAB % SECTOR == 0 && warps % (SLAB / SECTOR) == 0, "a thread must stay in its column of a");
    static_assert(TILE_ROWS % a_rows == 0 && SLAB % b_rows == 0, "copies must be shared evenly");
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

// Copies slabs of a and b to shared memory, each thread always the same part of them.
template <typename Tile> struct Courier {
    // The next elements of a and b for this thread, and how far it is to the rows that it copies after them.
    const float *a, *b;
    size_t a_step, b_step;
    // Where they go to in a stage.
    unsigned int a_to, b_to;
    // Rows of a and columns of b from the thread's own on, and depth that is left for each of both.
    int a_rows, b_columns, a_depth, b_depth;
    bool is_aligned_b;

    __device__ __forceinline__ Courier(const Product& product, size_t tile_row, size_t tile_column, size_t begin, size_t end) {
        const unsigned int warp = threadIdx.x / WARP;
        const unsigned int lane = threadIdx.x % WARP;
        // Four rows of eight columns for each warp: whole sectors of memory, and all banks of shared memory.
        const unsigned int a_column = warp % (Tile::slab / SECTOR) * SECTOR + lane % SECTOR;
        const unsigned int a_row = warp / (Tile::slab / SECTOR) * (WARP / SECTOR) + lane / SECTOR;
        const unsigned int b_row = threadIdx.x / (Tile::tile_columns / VECTOR);
        const unsigned int b_column = threadIdx.x % (Tile::tile_columns / VECTOR) * VECTOR;
        a = product.a + (tile_row + a_row) * product.k + begin + a_column;
        b = product.b + (begin + b_row) * product.n + tile_column + b_column;
        a_step = Tile::a_rows * product.k;
        b_step = Tile::b_rows * product.n;
        a_to = (a_column * Tile::a_stride + a_row) * sizeof(float);
        b_to = (Tile::a_length + b_row * Tile::tile_columns + b_column) * sizeof(float);
        a_rows = static_cast<int>(product.m - tile_row) - static_cast<int>(a_row);
        b_columns = static_cast<int>(product.n - tile_column) - static_cast<int>(b_column);
        a_depth = static_cast<int>(end - begin) - static_cast<int>(a_column);
        b_depth = static_cast<int>(end - begin) - static_cast<int>(b_row);
        is_aligned_b = product.n % VECTOR == 0 && is_aligned(product.b);
    }

    // Starts copying the next slab.
    __device__ __forceinline__ void copy(unsigned int stage) {
#pragma unroll
        for (unsigned int i = 0; i < Tile::tile_rows / Tile::a_rows; ++i) {
            const bool exists = a_depth > 0 && static_cast<int>(i * Tile::a_rows) < a_rows;
            copy_later<4>(stage + a_to + i * Tile::a_rows * sizeof(float), a + i * a_step, exists);
        }
#pragma unroll
        for (unsigned int i = 0; i < Tile::slab / Tile::b_rows; ++i) {
            const unsigned int to = stage + b_to + i * Tile::b_rows * Tile::tile_columns * sizeof(float);
            const float* const from = b + i * b_step;
            const bool exists = static_cast<int>(i * Tile::b_rows) < b_depth;
            if (is_aligned_b) {
                copy_later(to, from, exists && b_columns > 0);
                continue;
            }
#pragma unroll
            for (int q = 0; q < static_cast<int>(VECTOR); ++q) {
                copy_later<4>(to + q * sizeof(float), from + q, exists && q < b_columns);
            }
        }
        a += Tile::slab;
        b += Tile::slab / Tile::b_rows * b_step;
        a_depth -= Tile::slab;
        b_depth -= Tile::slab;
    }
};

// What a thread multiplies in a step of depth.
template <typename Tile> struct Step {
    float a[Tile::rows], b[Tile::columns];

    // From the first of the thread's rows and columns in shared memory.
    __device__ __forceinline__ void read(const float* from_a, const float* from_b) {
#pragma unroll
        for (unsigned int i = 0; i < Tile::rows; i += VECTOR) {
            *reinterpret_cast<float4*>(a + i) = *reinterpret_cast<const float4*>(from_a + i * LANES_DOWN);
        }
#pragma unroll
        for (unsigned int j = 0; j < Tile::columns; j += VECTOR) {
            *reinterpret_cast<float4*>(b + j) = *reinterpret_cast<const float4*>(from_b + j * LANES_ACROSS);
        }
    }
};

// Adds the product of a slab to a thread's patch; every step is read while the one before is multiplied.
template <typename Tile>
static __device__ __forceinline__ void multiply_slab(
    const float* a, const float* b, float (&patch)[Tile::rows][Tile::columns]) {
    Step<Tile> steps[2];
    steps[0].read(a, b);
#pragma unroll
    for (unsigned int depth = 0; depth < Tile::slab; ++depth) {
        if (depth + 1 < Tile::slab) {
            steps[(depth + 1) % 2].read(a + (depth + 1) * Tile::a_stride, b + (depth + 1) * Tile::tile_columns);
        }
        const Step<Tile>& step = steps[depth % 2];
#pragma unroll
        for (unsigned int i = 0; i < Tile::rows; ++i) {
#pragma unroll
            for (unsigned int j = 0; j < Tile::columns; ++j) {
                // To and fro: where a row ends, the next one begins with the same column, which is at hand.
                const unsigned int column = i % 2 == 0 ? j : Tile::columns - 1 - j;
                patch[i][column] += step.a[i] * step.b[column];
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
        const size_t row = first_row + i / VECTOR * VECTOR * LANES_DOWN + i % VECTOR;
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
    const unsigned int shared = shared_address(stages);

    const size_t index = blockIdx.z / product.splits;
    const unsigned int split = blockIdx.z % product.splits;
    product.a += index * product.m * product.k;
    product.b += index * product.k * product.n;
    product.c += index * product.m * product.n;
    const size_t tile_row = static_cast<size_t>(blockIdx.y) * Tile::tile_rows;
    const size_t tile_column = static_cast<size_t>(blockIdx.x) * Tile::tile_columns;
    const size_t begin = split * product.range;
    const size_t end = begin + product.range < product.k ? begin + product.range : product.k;
    const unsigned int slabs = static_cast<unsigned int>((end - begin + Tile::slab - 1) / Tile::slab);

    const unsigned int warp = threadIdx.x / WARP;
    const unsigned int lane = threadIdx.x % WARP;
    const unsigned int row = warp / Tile::warps_across * Tile::warp_rows + lane / LANES_ACROSS * VECTOR;
    const unsigned int column = warp % Tile::warps_across * Tile::warp_columns + lane % LANES_ACROSS * VECTOR;
    float patch[Tile::rows][Tile::columns] = {};

    Courier<Tile> courier(product, tile_row, tile_column, begin, end);
    const auto copy = [&](unsigned int slab) {
        if (slab < slabs) {
            courier.copy(shared + slab % Tile::stages * Tile::stage_length * sizeof(float));
        }
        // An empty group keeps the count right.
        end_of_copies();
    };
#pragma unroll
    for (unsigned int slab = 0; slab < Tile::stages - 1; ++slab) {
        copy(slab);
    }
    for (unsigned int slab = 0; slab < slabs; ++slab) {
        wait_for_copies<Tile::stages - 2>();
        // This slab is there for all threads, and nobody uses the one before any more: its stage is free.
        __syncthreads();
        copy(slab + Tile::stages - 1);
        const float* const stage = stages + slab % Tile::stages * Tile::stage_length;
        multiply_slab<Tile>(stage + row, stage + Tile::a_length + column, patch);
    }

    if (product.splits > 1) {
        const size_t tile = (index * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        if (!join_patches<Tile>(product, tile, split, patch)) {
            return;
        }
    }
    write_patch<Tile>(product, tile_row + row, tile_column + column, patch);
}

// An entry point for a tiling, of which so many blocks should fit into a multiprocessor. The host has the same table.
#define MATMUL_TILED(name, blocks, ...)                                                                                \
    extern "C" __global__ void __launch_bounds__(Tiling<__VA_ARGS__>::threads, blocks) name(                           \
        const float* a, const float* b, float* c, float* partial, size_t m, size_t n, size_t k, size_t splits,        \
        size_t range) {                                                                                                \
        multiply<Tiling<__VA_ARGS__>>({a, b, c, partial, m, n, k, splits, range});                                     \
    }

MATMUL_TILED(matmul_tiled_64x128, 3, 64, 128, 16, 8, 8, 2)
MATMUL_TILED(matmul_tiled_64x64, 4, 64, 64, 16, 8, 4, 3)
MATMUL_TILED(matmul_tiled_32x64, 4, 32, 64, 32, 4, 4, 2)
MATMUL_TILED(matmul_tiled_32x32, 8, 32, 32, 16, 4, 4, 3)
