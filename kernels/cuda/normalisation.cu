// Rows brought to a common scale: one or two reductions of a row, then a pass that writes it.
//
// A team of threads holds a row in registers from the first pass to the last, so that memory is read once and written
// once. Rows that are too long for that, or no whole packs, are read again by every pass, from the caches if they are
// still there.
//
// Launched with as many teams as there are rows, in blocks of whole warps and whole teams. The threads of a team are a
// power of two; they should be so many that HELD elements each make a row. Arrays begin at multiples of 16 bytes.

#include "common.cuh"

// Elements that a thread holds: four packs of 16 bytes on their way from memory at once, and few enough registers for
// many threads.
template <typename T> static constexpr unsigned int HELD = 4 * Pack<T>::LENGTH;

// Registers of a thread at most: few enough for blocks of 1024 threads, and for six blocks of 256 where elements are f32.
template <typename T> static constexpr unsigned int MOST_REGISTERS = sizeof(T) == 4 ? 40 : 64;

// ---- the threads of a row

class Team {
public:
    __device__ __forceinline__ explicit Team(unsigned int size) : size(size), rank(threadIdx.x & (size - 1)) {}

    // Joins the values of all threads of the team; every one of them gets the same bits.
    template <typename Join> __device__ __forceinline__ float reduce(float value, float* partial) const {
#pragma unroll
        for (unsigned int distance = WARP / 2; distance > 0; distance /= 2) {
            if (distance < size) {
                value = Join::join(value, __shfl_xor_sync(ALL_LANES, value, distance));
            }
        }
        if (size <= WARP) {
            return value;
        }
        const unsigned int lane = threadIdx.x % WARP;
        const unsigned int warp = threadIdx.x / WARP;
        const unsigned int warps = size / WARP;
        if (lane == 0) {
            partial[warp] = value;
        }
        __syncthreads();
        return reduce_warp<Join>(lane < warps ? partial[(warp & ~(warps - 1)) + lane] : Join::start());
    }

    const unsigned int size;
    const unsigned int rank;
};

// ---- a row, in vectors of LENGTH elements

template <typename T, unsigned int LENGTH>
static __device__ __forceinline__ void widen(const Vector<T, LENGTH>& vector, float (&x)[LENGTH]) {
#pragma unroll
    for (unsigned int i = 0; i < LENGTH; ++i) {
        x[i] = widen(vector.values[i]);
    }
}

// to ← function(x, weights...)
template <typename T, unsigned int LENGTH, typename Function, typename... Weights>
static __device__ __forceinline__ void write_vector(
    T* to, const float (&x)[LENGTH], Function function, const Weights&... weights) {
    Vector<T, LENGTH> result;
#pragma unroll
    for (unsigned int i = 0; i < LENGTH; ++i) {
        result.values[i] = narrow<T>(function(x[i], widen(weights.values[i])...));
    }
    result.store(to);
}

// The part of a row of whole packs that a thread holds in registers.
template <typename T> class HeldRow {
    static constexpr unsigned int LENGTH = Pack<T>::LENGTH;
    static constexpr unsigned int COUNT = HELD<T> / LENGTH;

public:
    __device__ __forceinline__ HeldRow(const T* row, const Team& team, unsigned int dim)
        : first(team.rank * LENGTH), step(team.size * LENGTH), dim(dim) {
        Vector<T, LENGTH> vectors[COUNT];
#pragma unroll
        for (unsigned int v = 0; v < COUNT; ++v) {
            if (has(v)) {
                vectors[v] = Vector<T, LENGTH>::load(row + at(v));
            }
        }
#pragma unroll
        for (unsigned int v = 0; v < COUNT; ++v) {
            widen(vectors[v], x[v]);
        }
    }

    // The row of function(x).
    template <typename Function> __device__ __forceinline__ HeldRow map(Function function) const {
        HeldRow mapped = *this;
#pragma unroll
        for (unsigned int v = 0; v < COUNT; ++v) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                mapped.x[v][i] = function(x[v][i]);
            }
        }
        return mapped;
    }

    // Joins function(x) of this thread's elements.
    template <typename Join, typename Function> __device__ __forceinline__ float fold(Function function) const {
        float result = Join::start();
#pragma unroll
        for (unsigned int v = 0; v < COUNT; ++v) {
            if (has(v)) {
#pragma unroll
                for (unsigned int i = 0; i < LENGTH; ++i) {
                    result = Join::join(result, function(x[v][i]));
                }
            }
        }
        return result;
    }

    // out ← function(x, weights...)
    template <typename Function, typename... Weights>
    __device__ __forceinline__ void write(T* out, Function function, const Weights*... weights) const {
#pragma unroll
        for (unsigned int v = 0; v < COUNT; ++v) {
            if (has(v)) {
                write_vector(out + at(v), x[v], function, Vector<T, LENGTH>::load(weights + at(v))...);
            }
        }
    }

private:
    __device__ __forceinline__ unsigned int at(unsigned int v) const { return first + v * step; }
    __device__ __forceinline__ bool has(unsigned int v) const { return at(v) < dim; }

    float x[COUNT][LENGTH];
    const unsigned int first;
    const unsigned int step;
    const unsigned int dim;
};

struct Same {
    __device__ __forceinline__ float operator()(float x) const { return x; }
};

// The same for any row: every pass reads and maps it again.
template <typename T, unsigned int LENGTH, typename Mapping = Same> class LongRow {
public:
    __device__ __forceinline__ LongRow(const T* row, const Team& team, size_t dim, Mapping mapping = Mapping())
        : row(row), team(team), dim(dim), mapping(mapping) {}

    template <typename Function> __device__ __forceinline__ auto map(Function function) const {
        return LongRow<T, LENGTH, Function>(row, team, dim, function);
    }

    template <typename Join, typename Function> __device__ __forceinline__ float fold(Function function) const {
        float result = Join::start();
        each([&](size_t, const float(&x)[LENGTH]) {
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                result = Join::join(result, function(x[i]));
            }
        });
        return result;
    }

    template <typename Function, typename... Weights>
    __device__ __forceinline__ void write(T* out, Function function, const Weights*... weights) const {
        each([&](size_t at, const float(&x)[LENGTH]) {
            write_vector(out + at, x, function, Vector<T, LENGTH>::load(weights + at)...);
        });
    }

private:
    // Calls visit(index, elements) for this thread's vectors.
    template <typename Visit> __device__ __forceinline__ void each(Visit visit) const {
#pragma unroll 2
        for (size_t at = team.rank * LENGTH; at < dim; at += team.size * LENGTH) {
            float x[LENGTH];
            widen(Vector<T, LENGTH>::load(row + at), x);
#pragma unroll
            for (unsigned int i = 0; i < LENGTH; ++i) {
                x[i] = mapping(x[i]);
            }
            visit(at, x);
        }
    }

    const T* const row;
    const Team team;
    const size_t dim;
    const Mapping mapping;
};

// ---- what is done with a row

// out ← x · (w + shift) / √(mean(x²) + ε)
template <typename T> struct RmsNorm {
    const T* weights;
    float eps;
    float shift;

    template <typename Row>
    __device__ __forceinline__ void operator()(const Row& row, T* out, float dim, const Team& team) const {
        __shared__ float partial[MOST_WARPS];
        const float squares = row.template fold<Sum>([](float x) { return x * x; });
        const float scale = rsqrtf(team.reduce<Sum>(squares, partial) / dim + eps);
        const float shift = this->shift;
        row.write(out, [scale, shift](float x, float w) { return x * scale * (w + shift); }, weights);
    }
};

// out ← (x − mean x) · w / √(var(x) + ε) + b, the variance from the distances to the mean that is already known: the
// difference of two large sums would lose its digits where the mean is far from zero.
template <typename T> struct LayerNorm {
    const T* weights;
    const T* bias;
    float eps;

    template <typename Row>
    __device__ __forceinline__ void operator()(const Row& row, T* out, float dim, const Team& team) const {
        __shared__ float partial[2][MOST_WARPS];
        const float sum = row.template fold<Sum>(Same());
        const float mean = team.reduce<Sum>(sum, partial[0]) / dim;
        const float squares = row.template fold<Sum>([mean](float x) { return (x - mean) * (x - mean); });
        const float scale = rsqrtf(team.reduce<Sum>(squares, partial[1]) / dim + eps);
        row.write(
            out, [mean, scale](float x, float w, float b) { return (x - mean) * scale * w + b; }, weights, bias);
    }
};

// out ← exp(x − max x) / Σ exp(x − max x)
template <typename T> struct Softmax {
    template <typename Row>
    __device__ __forceinline__ void operator()(const Row& row, T* out, float, const Team& team) const {
        __shared__ float partial[2][MOST_WARPS];
        const float max = team.reduce<Max>(row.template fold<Max>(Same()), partial[0]);
        const auto powers = row.map([max](float x) { return __expf(x - max); });
        const float scale = 1.0f / team.reduce<Sum>(powers.template fold<Sum>(Same()), partial[1]);
        powers.write(out, [scale](float power) { return power * scale; });
    }
};

// ---- rows of a matrix

// Every row by a team of its own. All threads come along to the end, as they meet at barriers; those beyond the last row
// hold nothing.
template <typename T> struct Rows {
    const T* x;
    T* out;
    const size_t dim;
    const Team team;
    // Elements of this team's row.
    size_t present;

    __device__ __forceinline__ Rows(const T* x, T* out, size_t rows, size_t dim, unsigned int team_size)
        : dim(dim), team(team_size) {
        const size_t row = static_cast<size_t>(blockIdx.x) * (blockDim.x / team_size) + threadIdx.x / team_size;
        this->x = x + row * dim;
        this->out = out + row * dim;
        present = row < rows ? dim : 0;
    }

    // For rows of whole packs that fit into the registers of their teams.
    template <typename Operation> __device__ __forceinline__ void held(const Operation& operation) const {
        operation(HeldRow<T>(x, team, present), out, dim, team);
    }

    // For all others. The condition is the same for all rows, or threads of a block would wait for each other at different
    // barriers.
    template <typename Operation> __device__ __forceinline__ void any(const Operation& operation) const {
        if (dim % Pack<T>::LENGTH == 0) {
            operation(LongRow<T, Pack<T>::LENGTH>(x, team, present), out, dim, team);
        } else {
            operation(LongRow<T, 1>(x, team, present), out, dim, team);
        }
    }
};

// All operations: `way` is what is done with rows, held or any.
#define NORMALISATION(T, suffix, way)                                                                                  \
    extern "C" __global__ void __maxnreg__(MOST_REGISTERS<T>) rms_norm##suffix(                                        \
        const T* x, const T* w, float eps, T* out, size_t rows, size_t dim, size_t team) {                             \
        Rows<T>(x, out, rows, dim, team).way(RmsNorm<T>{w, eps, 0.0f});                                                \
    }                                                                                                                  \
    extern "C" __global__ void __maxnreg__(MOST_REGISTERS<T>) rms_norm_gemma##suffix(                                  \
        const T* x, const T* w, float eps, T* out, size_t rows, size_t dim, size_t team) {                             \
        Rows<T>(x, out, rows, dim, team).way(RmsNorm<T>{w, eps, 1.0f});                                                \
    }                                                                                                                  \
    /* Blocks are halved: the first row of the grid takes q, the second k. */                                          \
    extern "C" __global__ void __maxnreg__(MOST_REGISTERS<T>) qk_norm##suffix(                                         \
        const T* q, const T* k, const T* wq, const T* wk, float eps, T* q_out, T* k_out, size_t rows, size_t dim,      \
        size_t team) {                                                                                                 \
        const bool is_query = blockIdx.y == 0;                                                                         \
        Rows<T>(is_query ? q : k, is_query ? q_out : k_out, rows, dim, team)                                           \
            .way(RmsNorm<T>{is_query ? wq : wk, eps, 0.0f});                                                           \
    }                                                                                                                  \
    extern "C" __global__ void __maxnreg__(MOST_REGISTERS<T>) layer_norm##suffix(                                      \
        const T* x, const T* w, const T* b, float eps, T* out, size_t rows, size_t dim, size_t team) {                 \
        Rows<T>(x, out, rows, dim, team).way(LayerNorm<T>{w, b, eps});                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __maxnreg__(MOST_REGISTERS<T>) softmax##suffix(                                         \
        const T* x, T* out, size_t rows, size_t dim, size_t team) {                                                    \
        Rows<T>(x, out, rows, dim, team).way(Softmax<T>{});                                                            \
    }

#define HELD_ROWS(T, suffix) NORMALISATION(T, _##suffix, held)
#define ANY_ROWS(T, suffix) NORMALISATION(T, _any_##suffix, any)
FOR_FLOATS(HELD_ROWS)
FOR_FLOATS(ANY_ROWS)
