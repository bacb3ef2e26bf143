// One output element from one element of each input, bound by memory: ELEMENTWISE_GRAIN consecutive elements for each
// thread, as one load or store of 16 bytes wherever the addresses allow it.
//
// Launched with as many threads as it takes to cover n at ELEMENTWISE_GRAIN elements each.

static constexpr size_t ELEMENTWISE_GRAIN = 4;

// Every thread starts at a multiple of 16 bytes from the base, so the base decides for all of them.
static __device__ __forceinline__ bool elementwise_aligned(const float* base) {
    return reinterpret_cast<size_t>(base) % sizeof(float4) == 0;
}

static __device__ __forceinline__ size_t elementwise_first() {
    return (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * ELEMENTWISE_GRAIN;
}

// y ← a·x + y
extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, size_t n) {
    const size_t first = elementwise_first();
    if (first + ELEMENTWISE_GRAIN <= n && elementwise_aligned(x) && elementwise_aligned(y)) {
        const float4 from = *reinterpret_cast<const float4*>(x + first);
        float4 to = *reinterpret_cast<const float4*>(y + first);
        to.x += a * from.x;
        to.y += a * from.y;
        to.z += a * from.z;
        to.w += a * from.w;
        *reinterpret_cast<float4*>(y + first) = to;
    } else {
        for (size_t i = first; i < first + ELEMENTWISE_GRAIN && i < n; ++i) {
            y[i] += a * x[i];
        }
    }
}

// out ← x + y
extern "C" __global__ void add(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, size_t n) {
    const size_t first = elementwise_first();
    if (first + ELEMENTWISE_GRAIN <= n && elementwise_aligned(x) && elementwise_aligned(y) &&
        elementwise_aligned(out)) {
        const float4 left = *reinterpret_cast<const float4*>(x + first);
        const float4 right = *reinterpret_cast<const float4*>(y + first);
        *reinterpret_cast<float4*>(out + first) =
            make_float4(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w);
    } else {
        for (size_t i = first; i < first + ELEMENTWISE_GRAIN && i < n; ++i) {
            out[i] = x[i] + y[i];
        }
    }
}
