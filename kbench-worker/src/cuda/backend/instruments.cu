// What the stopwatch launches beside the kernels that it times, and what ceilings are measured with.

static __device__ unsigned long long now() {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

// Holds the stream until the host opens the gate, or until patience ends: work that waits for the device while the gate
// is closed would wait forever. flag[0] opens it, flag[1] tells that it opened by itself.
extern "C" __global__ void kbench_gate(volatile unsigned* flag, unsigned long long patience) {
    unsigned long long begun = now();
    while (flag[0] == 0) {
        if (now() - begun > patience) {
            flag[1] = 1;
            __threadfence_system();
            return;
        }
    }
}

extern "C" __global__ void kbench_nothing() {}

// Cycles and nanoseconds of every multiprocessor: two of these tell the clock in between.
extern "C" __global__ void kbench_stamp(unsigned long long* stamps) {
    if (threadIdx.x == 0) {
        unsigned multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        stamps[2 * multiprocessor] = clock64();
        stamps[2 * multiprocessor + 1] = now();
    }
}

// Keeps all multiprocessors busy for a while, so that their clocks rise.
extern "C" __global__ void kbench_busy(unsigned long long nanoseconds, float* sink) {
    unsigned long long begun = now();
    float x = threadIdx.x;
    while (now() - begun < nanoseconds) {
        for (int i = 0; i < 256; i++) x = x * 1.000001f + 0.5f;
    }
    if (x == -1.0f) *sink = x;
}

extern "C" __global__ void kbench_copy(const uint4* from, uint4* to, size_t count) {
    size_t step = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) to[i] = from[i];
}

extern "C" __global__ void kbench_read(const uint4* from, uint4* to, size_t count) {
    size_t step = gridDim.x * (size_t)blockDim.x;
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 word = from[i];
        sum.x ^= word.x; sum.y ^= word.y; sum.z ^= word.z; sum.w ^= word.w;
    }
    // Never true of random words for all threads; the compiler does not know.
    if ((sum.x & sum.y & sum.z & sum.w) == 0xffffffffu) to[threadIdx.x] = sum;
}

// Reads the same words again and again: what a cache that holds them can deliver.
extern "C" __global__ void kbench_read_often(const uint4* from, uint4* to, size_t count, unsigned passes) {
    size_t step = gridDim.x * (size_t)blockDim.x;
    size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (unsigned pass = 0; pass < passes; pass++) {
        // Not through the first-level cache, and from another place in every pass.
        for (size_t i = (first + pass * 977u * blockDim.x) % step; i < count; i += step) {
            uint4 word = __ldcg(from + i);
            sum.x ^= word.x; sum.y ^= word.y; sum.z ^= word.z; sum.w ^= word.w;
        }
    }
    if ((sum.x & sum.y & sum.z & sum.w) == 0xffffffffu) to[threadIdx.x] = sum;
}

// Words that look random, so that neither compression nor idle wires flatter a ceiling.
extern "C" __global__ void kbench_scramble(unsigned* words, size_t count, unsigned mask, unsigned bits) {
    size_t step = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
        unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        words[i] = ((unsigned)(z >> 32) & mask) | bits;
    }
}
