// Matrix product of row-major matrices, c ← a·b for a of m × k and b of k × n: element by element, and in tiles.

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

// Rows and columns of c that a block computes.
static constexpr unsigned int MATMUL_TILE = 64;
// Columns of a and rows of b that are in shared memory at a time.
static constexpr unsigned int MATMUL_DEPTH = 16;
// Rows and columns of c that a thread keeps in registers; also the elements that it loads at a time.
static constexpr unsigned int MATMUL_PATCH = 4;
// Threads along each side of a block.
static constexpr unsigned int MATMUL_SIDE = MATMUL_TILE / MATMUL_PATCH;
// Keeps rows of a transposed tile apart in the banks of shared memory, and each of them aligned to 16 bytes.
static constexpr unsigned int MATMUL_PADDING = 4;

static_assert(
    MATMUL_SIDE * MATMUL_SIDE * MATMUL_PATCH == MATMUL_TILE * MATMUL_DEPTH,
    "one load by every thread must fill a tile");

// Whether all rows of a matrix can be read and written in vectors of 16 bytes.
static __device__ __forceinline__ bool matmul_aligned(const float* matrix, size_t columns) {
    return reinterpret_cast<size_t>(matrix) % sizeof(float4) == 0 && columns % MATMUL_PATCH == 0;
}

// Four neighbours in a row, where `column` is a multiple of four; zeros stand for what is outside of the matrix.
static __device__ __forceinline__ float4 matmul_load(
    const float* __restrict__ matrix, bool aligned, size_t rows, size_t columns, size_t row, size_t column) {
    float4 values = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows || column >= columns) {
        return values;
    }
    const float* const first = matrix + row * columns + column;
    if (aligned) {
        return *reinterpret_cast<const float4*>(first);
    }
    values.x = first[0];
    values.y = column + 1 < columns ? first[1] : 0.0f;
    values.z = column + 2 < columns ? first[2] : 0.0f;
    values.w = column + 3 < columns ? first[3] : 0.0f;
    return values;
}

// A tile of c for each block, a patch of it for each thread. Launched with MATMUL_SIDE × MATMUL_SIDE threads and a
// block for each tile, columns along x.
extern "C" __global__ void __launch_bounds__(MATMUL_SIDE * MATMUL_SIDE) matmul_tiled(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, size_t m, size_t n, size_t k) {
    // The tile of a is transposed, so that a thread finds the rows of its patch side by side.
    __shared__ __align__(16) float a_tile[MATMUL_DEPTH][MATMUL_TILE + MATMUL_PADDING];
    __shared__ __align__(16) float b_tile[MATMUL_DEPTH][MATMUL_TILE];

    const unsigned int thread = threadIdx.y * MATMUL_SIDE + threadIdx.x;
    const size_t tile_row = static_cast<size_t>(blockIdx.y) * MATMUL_TILE;
    const size_t tile_column = static_cast<size_t>(blockIdx.x) * MATMUL_TILE;

    // What this thread brings: four columns of one row of a, four columns of one row of b.
    const unsigned int a_row = thread / (MATMUL_DEPTH / MATMUL_PATCH);
    const unsigned int a_column = thread % (MATMUL_DEPTH / MATMUL_PATCH) * MATMUL_PATCH;
    const unsigned int b_row = thread / (MATMUL_TILE / MATMUL_PATCH);
    const unsigned int b_column = thread % (MATMUL_TILE / MATMUL_PATCH) * MATMUL_PATCH;
    const bool a_aligned = matmul_aligned(a, k);
    const bool b_aligned = matmul_aligned(b, n);

    // What this thread computes.
    const unsigned int patch_row = threadIdx.y * MATMUL_PATCH;
    const unsigned int patch_column = threadIdx.x * MATMUL_PATCH;
    float patch[MATMUL_PATCH][MATMUL_PATCH] = {};

    float4 a_next = matmul_load(a, a_aligned, m, k, tile_row + a_row, a_column);
    float4 b_next = matmul_load(b, b_aligned, k, n, b_row, tile_column + b_column);
    for (size_t depth = 0; depth < k; depth += MATMUL_DEPTH) {
        a_tile[a_column + 0][a_row] = a_next.x;
        a_tile[a_column + 1][a_row] = a_next.y;
        a_tile[a_column + 2][a_row] = a_next.z;
        a_tile[a_column + 3][a_row] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[b_row][b_column]) = b_next;
        __syncthreads();

        // The next tiles travel while these are used; past the end there is nothing to load.
        const size_t next = depth + MATMUL_DEPTH;
        a_next = matmul_load(a, a_aligned, m, k, tile_row + a_row, next + a_column);
        b_next = matmul_load(b, b_aligned, k, n, next + b_row, tile_column + b_column);

#pragma unroll
        for (unsigned int p = 0; p < MATMUL_DEPTH; ++p) {
            const float4 from_a = *reinterpret_cast<const float4*>(&a_tile[p][patch_row]);
            const float4 from_b = *reinterpret_cast<const float4*>(&b_tile[p][patch_column]);
            const float rows[MATMUL_PATCH] = {from_a.x, from_a.y, from_a.z, from_a.w};
            const float columns[MATMUL_PATCH] = {from_b.x, from_b.y, from_b.z, from_b.w};
#pragma unroll
            for (unsigned int i = 0; i < MATMUL_PATCH; ++i) {
#pragma unroll
                for (unsigned int j = 0; j < MATMUL_PATCH; ++j) {
                    patch[i][j] += rows[i] * columns[j];
                }
            }
        }
        __syncthreads();
    }

    const bool c_aligned = matmul_aligned(c, n);
    const size_t column = tile_column + patch_column;
#pragma unroll
    for (unsigned int i = 0; i < MATMUL_PATCH; ++i) {
        const size_t row = tile_row + patch_row + i;
        if (row >= m || column >= n) {
            continue;
        }
        float* const first = c + row * n + column;
        if (c_aligned) {
            *reinterpret_cast<float4*>(first) = make_float4(patch[i][0], patch[i][1], patch[i][2], patch[i][3]);
            continue;
        }
#pragma unroll
        for (unsigned int j = 0; j < MATMUL_PATCH; ++j) {
            if (column + j < n) {
                first[j] = patch[i][j];
            }
        }
    }
}
