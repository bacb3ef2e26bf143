// Kernels whose difference is known, and kernels that do wrong. All double their input.

// Dependent multiply-adds: bound by arithmetic. The result does not depend on the number of rounds, and the compiler does
// not know that.
extern "C" __global__ void arithmetic(const float* x, float* y, size_t n, unsigned rounds) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float chain = 1.0f + 1e-6f * (float)(i & 1023);
    for (unsigned round = 0; round < rounds; round++) chain = fmaf(chain, 0.999f, 0.001f);
    y[i] = chain < 0.0f ? chain : 2.0f * x[i];
}

// Reads `words` of a large array beside its input: bound by memory.
extern "C" __global__ void memory(const float* x, float* y, size_t n, const uint4* array, size_t words) {
    size_t step = gridDim.x * (size_t)blockDim.x;
    size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned all = 0;
    for (size_t i = first; i < words; i += step) {
        uint4 word = array[i];
        all |= word.x | word.y | word.z | word.w;
    }
    for (size_t i = first; i < n; i += step) y[i] = all == 12345u ? 0.0f : 2.0f * x[i];
}

extern "C" __global__ void twice(const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" __global__ void grow(const float* x, float* y, size_t n, float factor) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * y[i] + x[i];
}

// No test for the end: the last block writes beside its array.
extern "C" __global__ void out_of_bounds(const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    y[i] = i < n ? 2.0f * x[i] : 1.0f;
}

extern "C" __global__ void unwritten_tail(const float* x, float* y, size_t n) {
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) for (int k = 0; k < 4; k++) y[i + k] = 2.0f * x[i + k];
}

// Every thread takes what another one has put into shared memory, and does not wait for it.
extern "C" __global__ void race(const float* x, float* y, size_t n) {
    __shared__ volatile float tile[256];
    size_t first = blockIdx.x * (size_t)blockDim.x;
    unsigned other = blockDim.x - 1 - threadIdx.x;
    long long begun = clock64();
    while (threadIdx.x >= 128 && clock64() - begun < 2000) {}
    tile[threadIdx.x] = first + threadIdx.x < n ? x[first + threadIdx.x] : 0.0f;
    if (first + other < n) y[first + other] = 2.0f * tile[other];
    tile[threadIdx.x] = (float)(begun & 1023);
}

// Takes half a millisecond, and one multiprocessor.
extern "C" __global__ void dawdle() {
    unsigned long long begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begun < 500000);
}

extern "C" __global__ void forever(const float* x, float* y, size_t n, volatile unsigned* flag) {
    while (*flag == 0) {}
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" __global__ void illegal_address(const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    ((float*)0x10)[i] = x[0];
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" __global__ void changes_input(float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) { y[i] = 2.0f * x[i]; x[i] = 0.0f; }
}
