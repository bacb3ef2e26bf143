// What device times are compared on: kbench, plain CUDA C++ and a profiler all time these kernels. They stay as they
// are, so that records of their times stay comparable; fast kernels are the library's business.
//
// How a kernel is launched stands above it. subject_times.rs and yardstick.cu both do it.

// Elements that are loaded or stored at a time, in 16 bytes.
static constexpr size_t VECTOR = 4;

// Whether memory can be read and written in vectors.
static __device__ __forceinline__ bool is_aligned(const float* first) {
    return reinterpret_cast<size_t>(first) % sizeof(float4) == 0;
}

// y ← a·x + y. Launched with a thread for every VECTOR elements, in blocks of 256: what does not fill a vector has a
// thread of its own.
extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, size_t n) {
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * VECTOR;
    if (first + VECTOR <= n && is_aligned(x) && is_aligned(y)) {
        const float4 from = *reinterpret_cast<const float4*>(x + first);
        float4 to = *reinterpret_cast<const float4*>(y + first);
        to.x += a * from.x;
        to.y += a * from.y;
        to.z += a * from.z;
        to.w += a * from.w;
        *reinterpret_cast<float4*>(y + first) = to;
    } else {
        for (size_t i = first; i < first + VECTOR && i < n; ++i) {
            y[i] += a * x[i];
        }
    }
}

static constexpr unsigned int WARP = 32;
// Of a block.
static constexpr unsigned int WARPS_MAX = 32;

// Joins the values of all threads of a warp. Every thread gets the same bits, because the order of join's arguments
// makes no difference.
template <typename Join>
static __device__ __forceinline__ float reduce_warp(float value, Join join) {
    for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
        value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

// Joins the values of all threads of the block. `partial` is shared memory that nothing else in the kernel uses: then
// one barrier is enough.
template <typename Join>
static __device__ __forceinline__ float reduce_block(float value, float start, float* partial, Join join) {
    const unsigned int lane = threadIdx.x % WARP;
    value = reduce_warp(value, join);
    if (lane == 0) {
        partial[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    value = lane < blockDim.x / WARP ? partial[lane] : start;
    return reduce_warp(value, join);
}

// out ← x · w / √(mean(x²) + ε), row by row. Launched with a block of 256 threads for each row, which reduce it
// together and read it again to write it.
extern "C" __global__ void rms_norm(
    const float* __restrict__ x, const float* __restrict__ w, float eps, float* __restrict__ out, size_t dim) {
    __shared__ float sums[WARPS_MAX];
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    const bool aligned = is_aligned(x) && is_aligned(w) && is_aligned(out);
    const size_t vectors = aligned ? dim / VECTOR : 0;
    const size_t rest = vectors * VECTOR;
    const float4* const x_vectors = reinterpret_cast<const float4*>(x);
    const float4* const w_vectors = reinterpret_cast<const float4*>(w);
    float4* const out_vectors = reinterpret_cast<float4*>(out);

    float squares = 0.0f;
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        squares += (value.x * value.x + value.y * value.y) + (value.z * value.z + value.w * value.w);
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        squares += x[i] * x[i];
    }
    squares = reduce_block(squares, 0.0f, sums, [](float a, float b) { return a + b; });

    const float scale = 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        const float4 weight = w_vectors[i];
        out_vectors[i] = make_float4(
            value.x * scale * weight.x,
            value.y * scale * weight.y,
            value.z * scale * weight.z,
            value.w * scale * weight.w);
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        out[i] = x[i] * scale * w[i];
    }
}

// out ← exp(x − max x) / Σ exp(x − max x), row by row. Launched with a block of 256 threads for each row. The
// exponentials are computed twice rather than written to memory and read back: it is memory that this kernel waits for.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out, size_t dim) {
    __shared__ float maxima[WARPS_MAX];
    __shared__ float sums[WARPS_MAX];
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    const bool aligned = is_aligned(x) && is_aligned(out);
    const size_t vectors = aligned ? dim / VECTOR : 0;
    const size_t rest = vectors * VECTOR;
    const float4* const x_vectors = reinterpret_cast<const float4*>(x);
    float4* const out_vectors = reinterpret_cast<float4*>(out);

    const float lowest = -__int_as_float(0x7f800000); // minus infinity, without a header
    float max = lowest;
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        max = fmaxf(max, fmaxf(fmaxf(value.x, value.y), fmaxf(value.z, value.w)));
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        max = fmaxf(max, x[i]);
    }
    max = reduce_block(max, lowest, maxima, [](float a, float b) { return fmaxf(a, b); });

    float sum = 0.0f;
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        sum += (expf(value.x - max) + expf(value.y - max)) + (expf(value.z - max) + expf(value.w - max));
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        sum += expf(x[i] - max);
    }
    sum = reduce_block(sum, 0.0f, sums, [](float a, float b) { return a + b; });

    const float scale = 1.0f / sum;
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        out_vectors[i] = make_float4(
            expf(value.x - max) * scale,
            expf(value.y - max) * scale,
            expf(value.z - max) * scale,
            expf(value.w - max) * scale);
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        out[i] = expf(x[i] - max) * scale;
    }
}

// Rows and columns of c that a block computes.
static constexpr unsigned int TILE = 64;
// Columns of a and rows of b that are in shared memory at a time.
static constexpr unsigned int DEPTH = 16;
// Rows and columns of c that a thread keeps in registers; also the elements that it loads at a time.
static constexpr unsigned int PATCH = 4;
// Threads along each side of a block.
static constexpr unsigned int SIDE = TILE / PATCH;
// Keeps rows of a transposed tile apart in the banks of shared memory, and each of them aligned to 16 bytes.
static constexpr unsigned int PADDING = 4;

static_assert(SIDE * SIDE * PATCH == TILE * DEPTH, "one load by every thread must fill a tile");

// Whether all rows of a matrix can be read and written in vectors.
static __device__ __forceinline__ bool are_aligned(const float* matrix, size_t columns) {
    return is_aligned(matrix) && columns % VECTOR == 0;
}

// Four neighbours in a row, where `column` is a multiple of four; zeros stand for what is outside of the matrix.
static __device__ __forceinline__ float4 load(
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

// c ← a·b for a of m × k and b of k × n, all row by row: a tile of c for each block, a patch of it for each thread.
// Launched with a block of SIDE × SIDE threads for each tile, columns along x.
extern "C" __global__ void __launch_bounds__(SIDE * SIDE) matmul_tiled(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, size_t m, size_t n, size_t k) {
    // The tile of a is transposed, so that a thread finds the rows of its patch side by side.
    __shared__ __align__(16) float a_tile[DEPTH][TILE + PADDING];
    __shared__ __align__(16) float b_tile[DEPTH][TILE];

    const unsigned int thread = threadIdx.y * SIDE + threadIdx.x;
    const size_t tile_row = static_cast<size_t>(blockIdx.y) * TILE;
    const size_t tile_column = static_cast<size_t>(blockIdx.x) * TILE;

    // What this thread brings: four columns of one row of a, four columns of one row of b.
    const unsigned int a_row = thread / (DEPTH / PATCH);
    const unsigned int a_column = thread % (DEPTH / PATCH) * PATCH;
    const unsigned int b_row = thread / (TILE / PATCH);
    const unsigned int b_column = thread % (TILE / PATCH) * PATCH;
    const bool a_aligned = are_aligned(a, k);
    const bool b_aligned = are_aligned(b, n);

    // What this thread computes.
    const unsigned int patch_row = threadIdx.y * PATCH;
    const unsigned int patch_column = threadIdx.x * PATCH;
    float patch[PATCH][PATCH] = {};

    float4 a_next = load(a, a_aligned, m, k, tile_row + a_row, a_column);
    float4 b_next = load(b, b_aligned, k, n, b_row, tile_column + b_column);
    for (size_t depth = 0; depth < k; depth += DEPTH) {
        a_tile[a_column + 0][a_row] = a_next.x;
        a_tile[a_column + 1][a_row] = a_next.y;
        a_tile[a_column + 2][a_row] = a_next.z;
        a_tile[a_column + 3][a_row] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[b_row][b_column]) = b_next;
        __syncthreads();

        // The next tiles travel while these are used; past the end there is nothing to load.
        const size_t next = depth + DEPTH;
        a_next = load(a, a_aligned, m, k, tile_row + a_row, next + a_column);
        b_next = load(b, b_aligned, k, n, next + b_row, tile_column + b_column);

#pragma unroll
        for (unsigned int p = 0; p < DEPTH; ++p) {
            const float4 from_a = *reinterpret_cast<const float4*>(&a_tile[p][patch_row]);
            const float4 from_b = *reinterpret_cast<const float4*>(&b_tile[p][patch_column]);
            const float rows[PATCH] = {from_a.x, from_a.y, from_a.z, from_a.w};
            const float columns[PATCH] = {from_b.x, from_b.y, from_b.z, from_b.w};
#pragma unroll
            for (unsigned int i = 0; i < PATCH; ++i) {
#pragma unroll
                for (unsigned int j = 0; j < PATCH; ++j) {
                    patch[i][j] += rows[i] * columns[j];
                }
            }
        }
        __syncthreads();
    }

    const bool c_aligned = are_aligned(c, n);
    const size_t column = tile_column + patch_column;
#pragma unroll
    for (unsigned int i = 0; i < PATCH; ++i) {
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
        for (unsigned int j = 0; j < PATCH; ++j) {
            if (column + j < n) {
                first[j] = patch[i][j];
            }
        }
    }
}
