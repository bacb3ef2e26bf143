// A yardstick for device times: the kernels of timed.cu, timed in plain CUDA C++ with nothing but events.
//
//   yardstick                 times every case in three modes and prints a line of JSON for each
//   yardstick --list          prints index, kernel and size of every case, separated by tabs
//   yardstick --once CASE     launches the kernel of one case (its index, or "KERNEL SIZE") a few times, for a profiler
//
// `microseconds` is what the events say for one call:
//
//   cold     one call, after the second-level cache was overwritten; median over samples
//   hot      `calls` launches back to back, total / calls; median over repetitions
//   graph    the same launches captured in a CUDA graph and replayed, total / calls; median over repetitions
//
// `empty_pair_microseconds` is the median of the same two events, taken in the same way with nothing between them. It
// is not subtracted, nor divided by `calls`.
//
// All work of a sample is queued behind a gate, a kernel that waits for the host: by the time the first event is
// reached everything is in the queue, and the time that the host takes to launch is outside of the events.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <nvrtc.h>

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t status, const char* call, int line) {
    if (status != cudaSuccess) {
        std::fprintf(
            stderr, "yardstick.cu:%d: %s: %s (%s)\n", line, call, cudaGetErrorString(status), cudaGetErrorName(status));
        std::exit(1);
    }
}

using Clock = std::chrono::steady_clock;

static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

static constexpr double WARM_UP_SECONDS = 0.3;
// Cold samples go on until COLD_SECONDS are over, but number at least COLD_SAMPLES_MIN and at most COLD_SAMPLES_MAX.
// Kernels that are LONG_MICROSECONDS long vary little, and may have fewer.
static constexpr double COLD_SECONDS = 0.5;
static constexpr size_t COLD_SAMPLES_MIN = 200;
static constexpr size_t COLD_SAMPLES_MIN_OF_LONG = 20;
static constexpr size_t COLD_SAMPLES_MAX = 1000;
static constexpr double LONG_MICROSECONDS = 1000;
// Launches between the events of a hot or graph repetition: enough for BURST_MICROSECONDS, but never so many that the
// queue behind the gate is full, where the host would wait for the gate and the gate for the host.
static constexpr double BURST_MICROSECONDS = 2000;
static constexpr size_t BURST_CALLS_MAX = 200;
static constexpr size_t BURST_REPETITIONS = 50;
// Launches of `--once`.
static constexpr int ONCE_LAUNCHES = 15;
// A gate that nobody opens gives up, so that a mistake ends with a message and not with a hang.
static constexpr unsigned long long GATE_LIMIT_NANOSECONDS = 10'000'000'000;

// ---------------------------------------------------------------------------------------------------------------------
// The gate
// ---------------------------------------------------------------------------------------------------------------------

// In memory of the host that the device sees. Gates are numbered; those up to `opened` are open.
struct GateState {
    volatile unsigned int opened;
    volatile unsigned int expired;
};

static __device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __global__ void wait_at_gate(GateState* state, unsigned int number) {
    const unsigned long long begin = nanoseconds();
    while (state->opened < number) {
        if (nanoseconds() - begin > GATE_LIMIT_NANOSECONDS) {
            state->expired = number;
            return;
        }
    }
}

class Gate {
public:
    Gate() {
        void* memory = nullptr;
        CHECK(cudaHostAlloc(&memory, sizeof(GateState), cudaHostAllocMapped));
        host = static_cast<GateState*>(memory);
        host->opened = 0;
        host->expired = 0;
        void* seen_by_device = nullptr;
        CHECK(cudaHostGetDevicePointer(&seen_by_device, memory, 0));
        device = static_cast<GateState*>(seen_by_device);
    }

    void close(cudaStream_t stream) {
        number += 1;
        wait_at_gate<<<1, 1, 0, stream>>>(device, number);
        CHECK(cudaGetLastError());
    }

    void open() { host->opened = number; }

    // To be called when the stream is idle.
    void check_not_expired() const {
        if (host->expired != 0) {
            std::fprintf(stderr, "a gate was not opened in time: something that it holds back made the host wait\n");
            std::exit(1);
        }
    }

private:
    GateState* host = nullptr;
    GateState* device = nullptr;
    unsigned int number = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------------------------------

static void check_compiler(nvrtcResult status, const char* call, int line) {
    if (status != NVRTC_SUCCESS) {
        std::fprintf(stderr, "line %d: %s: %s\n", line, call, nvrtcGetErrorString(status));
        std::exit(1);
    }
}

#define CHECK_COMPILER(call) check_compiler((call), #call, __LINE__)

// Machine code by the run-time compiler, which is what kbench uses: nvcc allocates other registers from the same text, and
// the kernels would not be the same. SOURCE is the path of timed.cu, ARCHITECTURE as in sm_90a.
static cudaLibrary_t compiled() {
    std::ifstream stream(SOURCE);
    if (!stream) {
        std::fprintf(stderr, "%s cannot be read\n", SOURCE);
        std::exit(1);
    }
    std::stringstream text;
    text << stream.rdbuf();
    nvrtcProgram program;
    CHECK_COMPILER(nvrtcCreateProgram(&program, text.str().c_str(), "timed.cu", 0, nullptr, nullptr));
    const char* options[] = {"--gpu-architecture=" ARCHITECTURE, "--std=c++17", "--generate-line-info"};
    CHECK_COMPILER(nvrtcCompileProgram(program, 3, options));
    size_t size = 0;
    CHECK_COMPILER(nvrtcGetCUBINSize(program, &size));
    std::vector<char> code(size);
    CHECK_COMPILER(nvrtcGetCUBIN(program, code.data()));
    CHECK_COMPILER(nvrtcDestroyProgram(&program));
    cudaLibrary_t library;
    CHECK(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    return library;
}

static const void* kernel(const char* name) {
    static const cudaLibrary_t library = compiled();
    cudaKernel_t found;
    CHECK(cudaLibraryGetKernel(&found, library, name));
    return reinterpret_cast<const void*>(found);
}

template <class... Arguments>
static void launch(const void* kernel, dim3 blocks, dim3 threads, cudaStream_t stream, Arguments... arguments) {
    void* pointers[] = {&arguments...};
    CHECK(cudaLaunchKernel(kernel, blocks, threads, pointers, 0, stream));
}

extern "C" __global__ void empty() {}

// Reads all words. They are 0, which the compiler does not know.
static __global__ void read_through(uint4* words, size_t count) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    unsigned int any = 0;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint4 word = words[i];
        any |= word.x | word.y | word.z | word.w;
    }
    if (any != 0) {
        words[0].x = 1;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Cases
// ---------------------------------------------------------------------------------------------------------------------

// Puts work on a stream.
using Work = std::function<void(cudaStream_t)>;

struct Case {
    std::string kernel;
    std::string size;
    // Bytes that a call writes.
    size_t written;
    // Makes the buffers of the case, and gives one call of its kernel, which owns them.
    std::function<Work()> prepare;
};

using Buffer = std::shared_ptr<float>;

static Buffer buffer(size_t length) {
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, length * sizeof(float)));
    return Buffer(static_cast<float*>(memory), [](float* pointer) { CHECK(cudaFree(pointer)); });
}

static Buffer uploaded(const std::vector<float>& values) {
    Buffer filled = buffer(values.size());
    CHECK(cudaMemcpy(filled.get(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    // The stream of the measurements does not wait for the default stream.
    CHECK(cudaDeviceSynchronize());
    return filled;
}

// Uniform in [−1, 1), from a linear congruential generator (Knuth's MMIX constants): zeros would draw less power, and
// so run at other clocks.
static Buffer uniform(size_t length, unsigned long long seed) {
    std::vector<float> values(length);
    unsigned long long state = seed;
    for (float& value : values) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        value = static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1.0f;
    }
    return uploaded(values);
}

// Normal with mean 0 and variance 1 (Box and Muller), which is what kbench gives these kernels.
static Buffer normal(size_t length, unsigned long long seed) {
    std::vector<float> values(length);
    unsigned long long state = seed;
    auto next = [&state] {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (static_cast<double>(state >> 11) + 0.5) / 9007199254740992.0;
    };
    for (float& value : values) {
        const double radius = std::sqrt(-2.0 * std::log(next()));
        value = static_cast<float>(radius * std::cos(6.283185307179586 * next()));
    }
    return uploaded(values);
}

static unsigned int blocks_for(size_t work, size_t work_per_block) {
    return static_cast<unsigned int>((work + work_per_block - 1) / work_per_block);
}

static Case empty_case() {
    return {"empty", "threads=1", 0, [] {
        return [](cudaStream_t stream) {
            empty<<<1, 1, 0, stream>>>();
            CHECK(cudaGetLastError());
        };
    }};
}

static Case saxpy_case(size_t n) {
    return {"saxpy", "n=" + std::to_string(n), n * sizeof(float), [n] {
        const void* saxpy = kernel("saxpy");
        return [n, saxpy, x = uniform(n, 1), y = uniform(n, 2)](cudaStream_t stream) {
            launch(saxpy, blocks_for(n, 256 * 4), 256, stream, 0.5f, x.get(), y.get(), n);
        };
    }};
}

static std::string rows_size(size_t rows, size_t dim) {
    return "rows=" + std::to_string(rows) + ",dim=" + std::to_string(dim);
}

static Case rms_norm_case(size_t rows, size_t dim) {
    return {"rms_norm", rows_size(rows, dim), rows * dim * sizeof(float), [rows, dim] {
        const void* rms_norm = kernel("rms_norm");
        return [rows, dim, rms_norm, x = normal(rows * dim, 1), w = normal(dim, 2), out = buffer(rows * dim)](
                   cudaStream_t stream) {
            launch(rms_norm, blocks_for(rows, 1), 256, stream, x.get(), w.get(), 1e-5f, out.get(), dim);
        };
    }};
}

static Case softmax_case(size_t rows, size_t dim) {
    return {"softmax", rows_size(rows, dim), rows * dim * sizeof(float), [rows, dim] {
        const void* softmax = kernel("softmax");
        return [rows, dim, softmax, x = normal(rows * dim, 1), out = buffer(rows * dim)](cudaStream_t stream) {
            launch(softmax, blocks_for(rows, 1), 256, stream, x.get(), out.get(), dim);
        };
    }};
}

static Case matmul_tiled_case(size_t side) {
    const std::string length = std::to_string(side);
    return {"matmul_tiled", "m=" + length + ",n=" + length + ",k=" + length, side * side * sizeof(float), [side] {
        const size_t area = side * side;
        const void* matmul = kernel("matmul_tiled");
        return [side, matmul, a = uniform(area, 1), b = uniform(area, 2), c = buffer(area)](cudaStream_t stream) {
            const dim3 blocks(blocks_for(side, 64), blocks_for(side, 64));
            launch(matmul, blocks, dim3(16, 16), stream, a.get(), b.get(), c.get(), side, side, side);
        };
    }};
}

// The sizes of subject_times.rs.
static std::vector<Case> all_cases() {
    const std::vector<std::pair<size_t, size_t>> shapes = {
        {1, 1024}, {16, 1024}, {64, 4096}, {512, 4096}, {8192, 4096}};
    std::vector<Case> cases = {empty_case()};
    for (const int power : {10, 16, 20, 22, 24}) {
        cases.push_back(saxpy_case(size_t{1} << power));
    }
    for (const auto& [rows, dim] : shapes) {
        cases.push_back(rms_norm_case(rows, dim));
    }
    for (const auto& [rows, dim] : shapes) {
        cases.push_back(softmax_case(rows, dim));
    }
    for (const size_t side : {64, 384, 1024}) {
        cases.push_back(matmul_tiled_case(side));
    }
    return cases;
}

// ---------------------------------------------------------------------------------------------------------------------
// Measuring
// ---------------------------------------------------------------------------------------------------------------------

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// What a mode says about a case.
struct Answer {
    const char* mode;
    double microseconds;
    double empty_pair_microseconds;
    size_t calls;
    size_t samples;
};

// The stream, the events and the gate of all measurements. It lives as long as the process, which gives them back.
class Meter {
public:
    Meter() {
        int cache_bytes = 0;
        CHECK(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
        flush_bytes = 2 * static_cast<size_t>(cache_bytes);
        CHECK(cudaMalloc(&flush_memory, flush_bytes));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
    }

    // Also loads the kernel, which must not happen behind a gate.
    void warm_up(const Work& call) {
        const Clock::time_point begin = Clock::now();
        do {
            for (int i = 0; i < 4; ++i) {
                call(stream);
            }
            CHECK(cudaStreamSynchronize(stream));
        } while (seconds_since(begin) < WARM_UP_SECONDS);
    }

    // Launches under a profiler: without the gate, which a profiler that runs one kernel at a time would never see
    // opened, and without a warm-up by the kernel, whose launches would all be profiled. Overwriting memory brings the
    // clocks up instead.
    void launch_once(const Work& call, size_t written) {
        const Clock::time_point begin = Clock::now();
        do {
            flush(written);
        } while (seconds_since(begin) < WARM_UP_SECONDS);
        for (int i = 0; i < ONCE_LAUNCHES; ++i) {
            flush(written);
            call(stream);
            CHECK(cudaStreamSynchronize(stream));
        }
    }

    size_t burst_calls(const Work& call) {
        const size_t trial = 4;
        const double per_call = microseconds_of(repeated(call, trial)) / trial;
        const double calls = BURST_MICROSECONDS / std::max(per_call, 1.0);
        return std::min(std::max(static_cast<size_t>(calls), size_t{1}), BURST_CALLS_MAX);
    }

    Answer cold(const Work& call, size_t written) {
        const bool is_long = microseconds_of(call) >= LONG_MICROSECONDS;
        const size_t samples_min = is_long ? COLD_SAMPLES_MIN_OF_LONG : COLD_SAMPLES_MIN;
        std::vector<double> samples, empty_pairs;
        const Clock::time_point begin = Clock::now();
        while (samples.size() < COLD_SAMPLES_MAX &&
               (samples.size() < samples_min || seconds_since(begin) < COLD_SECONDS)) {
            flush(written);
            samples.push_back(microseconds_of(call));
            flush(written);
            empty_pairs.push_back(microseconds_of(nothing));
        }
        return {"cold", median(samples), median(empty_pairs), 1, samples.size()};
    }

    Answer hot(const Work& call, size_t calls) { return bursts("hot", repeated(call, calls), calls); }

    Answer graph(const Work& call, size_t calls) {
        cudaGraph_t captured = nullptr;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        repeated(call, calls)(stream);
        CHECK(cudaStreamEndCapture(stream, &captured));
        cudaGraphExec_t executable = nullptr;
        CHECK(cudaGraphInstantiate(&executable, captured, 0));
        const Work replay = [executable](cudaStream_t on) { CHECK(cudaGraphLaunch(executable, on)); };
        // The first launch brings the graph to the device, which must not happen behind a gate.
        replay(stream);
        CHECK(cudaStreamSynchronize(stream));

        const Answer answer = bursts("graph", replay, calls);
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(captured));
        return answer;
    }

private:
    static void nothing(cudaStream_t) {}

    static Work repeated(const Work& call, size_t calls) {
        return [&call, calls](cudaStream_t on) {
            for (size_t i = 0; i < calls; ++i) {
                call(on);
            }
        };
    }

    // Time between two events around the work, all of it queued before the first event is reached.
    double microseconds_of(const Work& work) {
        gate.close(stream);
        CHECK(cudaEventRecord(start, stream));
        work(stream);
        CHECK(cudaEventRecord(stop, stream));
        gate.open();
        CHECK(cudaStreamSynchronize(stream));
        gate.check_not_expired();
        float milliseconds = 0.0f;
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        return 1000.0 * milliseconds;
    }

    Answer bursts(const char* mode, const Work& burst, size_t calls) {
        std::vector<double> samples, empty_pairs;
        for (size_t i = 0; i < BURST_REPETITIONS; ++i) {
            samples.push_back(microseconds_of(burst) / static_cast<double>(calls));
            empty_pairs.push_back(microseconds_of(nothing));
        }
        return {mode, median(samples), median(empty_pairs), calls, samples.size()};
    }

    // Leaves nothing of earlier calls in the second-level cache, and as much to be written to memory as the next call writes:
    // lines that are overwritten are read, which brings them to memory, before so much is written once more.
    void flush(size_t written) {
        CHECK(cudaCtxResetPersistingL2Cache());
        CHECK(cudaMemsetAsync(flush_memory, 0, flush_bytes, stream));
        read_through<<<1024, 512, 0, stream>>>(static_cast<uint4*>(flush_memory), flush_bytes / sizeof(uint4));
        CHECK(cudaGetLastError());
        CHECK(cudaMemsetAsync(flush_memory, 0, std::min(written, flush_bytes / 2), stream));
        CHECK(cudaStreamSynchronize(stream));
    }

    cudaStream_t stream = nullptr;
    cudaEvent_t start = nullptr;
    cudaEvent_t stop = nullptr;
    void* flush_memory = nullptr;
    size_t flush_bytes = 0;
    Gate gate;
};

// ---------------------------------------------------------------------------------------------------------------------
// The program
// ---------------------------------------------------------------------------------------------------------------------

static void print(const Case& entry, const Answer& answer) {
    std::printf(
        "{\"kernel\":\"%s\",\"size\":\"%s\",\"mode\":\"%s\",\"microseconds\":%.4f,\"empty_pair_microseconds\":%.4f,"
        "\"calls\":%zu,\"samples\":%zu}\n",
        entry.kernel.c_str(),
        entry.size.c_str(),
        answer.mode,
        answer.microseconds,
        answer.empty_pair_microseconds,
        answer.calls,
        answer.samples);
    std::fflush(stdout);
}

static void time_all(const std::vector<Case>& cases) {
    Meter meter;
    for (const Case& entry : cases) {
        const Work call = entry.prepare();
        meter.warm_up(call);
        const size_t calls = meter.burst_calls(call);
        print(entry, meter.cold(call, entry.written));
        print(entry, meter.hot(call, calls));
        print(entry, meter.graph(call, calls));
    }
}

static const Case* find_case(const std::vector<Case>& cases, const std::string& wanted) {
    for (size_t i = 0; i < cases.size(); ++i) {
        if (wanted == std::to_string(i) || wanted == cases[i].kernel + " " + cases[i].size) {
            return &cases[i];
        }
    }
    return nullptr;
}

int main(int count, char** arguments) {
    const std::vector<Case> cases = all_cases();
    if (count == 1) {
        time_all(cases);
        return 0;
    }
    if (count == 2 && std::strcmp(arguments[1], "--list") == 0) {
        for (size_t i = 0; i < cases.size(); ++i) {
            std::printf("%zu\t%s\t%s\n", i, cases[i].kernel.c_str(), cases[i].size.c_str());
        }
        return 0;
    }
    if (count == 3 && std::strcmp(arguments[1], "--once") == 0) {
        const Case* const entry = find_case(cases, arguments[2]);
        if (entry == nullptr) {
            std::fprintf(stderr, "there is no case `%s`; --list shows them\n", arguments[2]);
            return 2;
        }
        Meter().launch_once(entry->prepare(), entry->written);
        return 0;
    }
    std::fprintf(stderr, "usage: yardstick [--list | --once CASE]\n");
    return 2;
}
