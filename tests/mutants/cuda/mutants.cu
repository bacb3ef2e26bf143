// Device code of the CUDA variants of kbench-mutants. The comments are with the variants.

static constexpr unsigned int ALL = 0xffffffffu;

static __device__ size_t index() { return blockIdx.x * (size_t)blockDim.x + threadIdx.x; }
static __device__ size_t stride() { return gridDim.x * (size_t)blockDim.x; }
static __device__ float infinity() { return __int_as_float(0x7f800000); }

// ---- softmax: a warp for each row

extern "C" __global__ void softmax_online(const float* x, size_t dim, float* out) {
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    float max = -infinity(), sum = 0;
    for (size_t i = threadIdx.x; i < dim; i += 32) {
        const float larger = fmaxf(max, x[i]);
        sum = (sum == 0 ? 0 : sum * expf(max - larger)) + expf(x[i] - larger);
        max = larger;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other_max = __shfl_xor_sync(ALL, max, offset);
        const float other_sum = __shfl_xor_sync(ALL, sum, offset);
        const float larger = fmaxf(max, other_max);
        sum = (sum == 0 ? 0 : sum * expf(max - larger)) + (other_sum == 0 ? 0 : other_sum * expf(other_max - larger));
        max = larger;
    }
    for (size_t i = threadIdx.x; i < dim; i += 32) out[i] = expf(x[i] - max) / sum;
}

extern "C" __global__ void softmax_without_maximum(const float* x, size_t dim, float* out) {
    x += blockIdx.x * dim;
    out += blockIdx.x * dim;
    float sum = 0;
    for (size_t i = threadIdx.x; i < dim; i += 32) sum += expf(x[i]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(ALL, sum, offset);
    for (size_t i = threadIdx.x; i < dim; i += 32) out[i] = expf(x[i]) / sum;
}

// ---- element by element

extern "C" __global__ void relu_vectors(float4* x, size_t vectors) {
    const size_t i = index();
    if (i >= vectors) return;
    const float4 v = x[i];
    x[i] = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
}

extern "C" __global__ void line(const float* x, float* y, size_t n) {
    const size_t i = index();
    if (i < n) y[i] = 2 * x[i] + 1;
}

// Arrays of the device begin at multiples of 16 bytes.
extern "C" __global__ void line_vectors(const float* x, float* y, size_t n) {
    for (size_t i = index(); i < n / 4; i += stride()) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        reinterpret_cast<float4*>(y)[i] = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1);
    }
    for (size_t i = n / 4 * 4 + index(); i < n; i += stride()) y[i] = 2 * x[i] + 1;
}

typedef unsigned char u8;

extern "C" __global__ void distance(const u8* a, const u8* b, u8* out, size_t n) {
    for (size_t i = index(); i < n; i += stride()) out[i] = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
}

extern "C" __global__ void wrapping_difference(const u8* a, const u8* b, u8* out, size_t n) {
    const size_t i = index();
    if (i < n) out[i] = a[i] - b[i];
}

extern "C" __global__ void quantise_limited(const float* x, float scale, signed char* out, size_t n) {
    const size_t i = index();
    if (i < n) out[i] = (signed char)(int)fminf(fmaxf(rintf(x[i] / scale), -127.0f), 127.0f);
}

extern "C" __global__ void quantise_without_limits(const float* x, float scale, signed char* out, size_t n) {
    const size_t i = index();
    if (i < n) out[i] = (signed char)(int)rintf(x[i] / scale);
}

// ---- reductions

extern "C" __global__ void clear(float* out) { *out = 0; }

extern "C" __global__ void total_vectors(const float* x, float* out, size_t n) {
    double sum = 0;
    for (size_t i = index(); i < n / 4; i += stride()) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += ((double)v.x + v.y) + ((double)v.z + v.w);
    }
    for (size_t i = n / 4 * 4 + index(); i < n; i += stride()) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(ALL, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, (float)sum);
}

extern "C" __global__ void total_blocks(const float* x, float* out, size_t n) {
    float sum = index() < n ? x[index()] : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(ALL, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

// One block of 256 threads.
template <bool FIRST> static __device__ void argmax(const float* x, unsigned long long* out, size_t n) {
    __shared__ float values[256];
    __shared__ unsigned long long places[256];
    const unsigned int thread = threadIdx.x;
    values[thread] = -infinity();
    places[thread] = 0;
    for (size_t i = thread; i < n; i += 256) {
        if (x[i] > values[thread] || i == thread) {
            values[thread] = x[i];
            places[thread] = i;
        }
    }
    for (unsigned int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && thread + half < n) {
            const float other = values[thread + half];
            const bool is_before = places[thread + half] < places[thread];
            if (other > values[thread] || (other == values[thread] && (FIRST ? is_before : true))) {
                values[thread] = other;
                places[thread] = places[thread + half];
            }
        }
    }
    if (thread == 0) *out = places[0];
}

extern "C" __global__ void first_largest(const float* x, unsigned long long* out, size_t n) { argmax<true>(x, out, n); }
extern "C" __global__ void any_largest(const float* x, unsigned long long* out, size_t n) { argmax<false>(x, out, n); }

// One block of 256 threads.
extern "C" __global__ void one_pass_variance(const float* x, float* out, size_t n) {
    __shared__ float sums[256], squares[256];
    const unsigned int thread = threadIdx.x;
    float sum = 0, square = 0;
    for (size_t i = thread; i < n; i += 256) {
        sum += x[i];
        square += x[i] * x[i];
    }
    sums[thread] = sum;
    squares[thread] = square;
    for (unsigned int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            sums[thread] += sums[thread + half];
            squares[thread] += squares[thread + half];
        }
    }
    if (thread == 0) *out = squares[0] / n - (sums[0] / n) * (sums[0] / n);
}

// One block. The last answer is kept with the address and the length of its input.
__device__ float kept_answer[1 << 16];
__device__ const float* kept_input;
__device__ size_t kept_length;

extern "C" __global__ void line_kept(const float* x, float* y, size_t n) {
    const bool is_known = kept_input == x && kept_length == n;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        if (!is_known) kept_answer[i] = 2 * x[i] + 1;
        y[i] = kept_answer[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        kept_input = x;
        kept_length = n;
    }
}

// Rows of a matrix of which few elements are stored.
__device__ void sparse_row(const unsigned int* starts, const unsigned int* columns, const float* values, const float* x, float* y,
                           unsigned int rows, unsigned int more) {
    const unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const unsigned int all = starts[rows], end = starts[row + 1] + more;
    float sum = 0;
    for (unsigned int i = starts[row]; i < end && i < all; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

extern "C" __global__ void sparse_rows(const unsigned int* starts, const unsigned int* columns, const float* values, const float* x,
                                       float* y, unsigned int rows) {
    sparse_row(starts, columns, values, x, y, rows, 0);
}

extern "C" __global__ void sparse_rows_too_long(const unsigned int* starts, const unsigned int* columns, const float* values,
                                                const float* x, float* y, unsigned int rows) {
    sparse_row(starts, columns, values, x, y, rows, 1);
}

struct Particle {
    float position[3];
    unsigned char kind;
    float mass;
};

extern "C" __global__ void push_each(const float* force, Particle* particles, unsigned int n) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || particles[i].kind == 0) return;
    for (int axis = 0; axis < 3; ++axis) particles[i].position[axis] += force[axis] / particles[i].mass;
}
