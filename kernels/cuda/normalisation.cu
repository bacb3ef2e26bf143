// Rows brought to a common scale: one block for each row, whose threads reduce the row together and then write it.
//
// Launched with one block for each row, of a whole number of warps, at most NORMALISATION_WARPS_MAX. Every pass reads
// the row again, from the cache after the first pass: no row is too long, as none has to fit in registers.

static constexpr unsigned int NORMALISATION_WARP = 32;
static constexpr unsigned int NORMALISATION_WARPS_MAX = 32;
static constexpr size_t NORMALISATION_VECTOR = 4;

// Whether a row can be read in vectors of 16 bytes, up to a rest that does not fill one.
static __device__ __forceinline__ bool normalisation_aligned(const float* row) {
    return reinterpret_cast<size_t>(row) % sizeof(float4) == 0;
}

// Joins the values of all threads of a warp. Every thread gets the same bits, because the order of join's arguments
// makes no difference.
template <typename Join>
static __device__ __forceinline__ float normalisation_reduce_warp(float value, Join join) {
    for (unsigned int distance = NORMALISATION_WARP / 2; distance > 0; distance /= 2) {
        value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

// Joins the values of all threads of the block. `partial` is shared memory that nothing else in the kernel uses: then
// one barrier is enough.
template <typename Join>
static __device__ __forceinline__ float normalisation_reduce_block(
    float value, float start, float* partial, Join join) {
    const unsigned int lane = threadIdx.x % NORMALISATION_WARP;
    value = normalisation_reduce_warp(value, join);
    if (lane == 0) {
        partial[threadIdx.x / NORMALISATION_WARP] = value;
    }
    __syncthreads();
    value = lane < blockDim.x / NORMALISATION_WARP ? partial[lane] : start;
    return normalisation_reduce_warp(value, join);
}

// out ← x · w / √(mean(x²) + ε), row by row
extern "C" __global__ void rms_norm(
    const float* __restrict__ x, const float* __restrict__ w, float eps, float* __restrict__ out, size_t dim) {
    __shared__ float sums[NORMALISATION_WARPS_MAX];
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    const bool aligned = normalisation_aligned(x) && normalisation_aligned(w) && normalisation_aligned(out);
    const size_t vectors = aligned ? dim / NORMALISATION_VECTOR : 0;
    const size_t rest = vectors * NORMALISATION_VECTOR;
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
    squares = normalisation_reduce_block(squares, 0.0f, sums, [](float a, float b) { return a + b; });

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

// out ← exp(x − max x) / Σ exp(x − max x), row by row. The exponentials are computed twice rather than written to
// memory and read back: it is memory that this kernel waits for.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out, size_t dim) {
    __shared__ float maxima[NORMALISATION_WARPS_MAX];
    __shared__ float sums[NORMALISATION_WARPS_MAX];
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    const bool aligned = normalisation_aligned(x) && normalisation_aligned(out);
    const size_t vectors = aligned ? dim / NORMALISATION_VECTOR : 0;
    const size_t rest = vectors * NORMALISATION_VECTOR;
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
    max = normalisation_reduce_block(max, lowest, maxima, [](float a, float b) { return fmaxf(a, b); });

    float sum = 0.0f;
    for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
        const float4 value = x_vectors[i];
        sum += (expf(value.x - max) + expf(value.y - max)) + (expf(value.z - max) + expf(value.w - max));
    }
    for (size_t i = rest + threadIdx.x; i < dim; i += blockDim.x) {
        sum += expf(x[i] - max);
    }
    sum = normalisation_reduce_block(sum, 0.0f, sums, [](float a, float b) { return a + b; });

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
