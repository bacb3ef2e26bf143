// One step of a recurrent cell: products with two weight matrices and the functions of all gates, in one launch.
//
// Weights are [gate][unit][number], states [row of the batch][unit]. Every thread ends up with all sums of a hidden unit: the
// gates i, f, g, o of an LSTM; or r, z, the part of n that comes from the input and the part that comes from the state of a GRU.

#include "common.cuh"

static constexpr unsigned int THREADS = 256;
static constexpr unsigned int SUMS = 4;

static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
// What distinguishes the two cells; c is null in a GRU.
struct Lstm {
    static constexpr unsigned int GATES = 4;
    static __device__ constexpr unsigned int input_sum(unsigned int gate) { return gate; }
    static __device__ constexpr unsigned int hidden_sum(unsigned int gate) { return gate; }
    static __device__ __forceinline__ void finish(const float (&sums)[SUMS], const float* h, const float* c, float* h_out,
                                                  float* c_out, size_t place) {
        const float next = sigmoid(sums[1]) * c[place] + sigmoid(sums[0]) * tanhf(sums[2]);
        c_out[place] = next;
        h_out[place] = sigmoid(sums[3]) * tanhf(next);
    }
};

struct Gru {
    static constexpr unsigned int GATES = 3;
    static __device__ constexpr unsigned int input_sum(unsigned int gate) { return gate; }
    static __device__ constexpr unsigned int hidden_sum(unsigned int gate) { return gate == 2 ? 3 : gate; }
    static __device__ __forceinline__ void finish(const float (&sums)[SUMS], const float* h, const float* c, float* h_out,
                                                  float* c_out, size_t place) {
        const float z = sigmoid(sums[1]);
        const float n = tanhf(sums[2] + sigmoid(sums[0]) * sums[3]);
        h_out[place] = (1.0f - z) * n + z * h[place];
    }
};

struct Arguments {
    const float *x, *h, *c, *input_weights, *hidden_weights, *input_bias, *hidden_bias;
    float *h_out, *c_out;
    unsigned int batch, hidden, input;
};

template <typename Cell>
static __device__ __forceinline__ void add_biases(float (&sums)[SUMS], const Arguments& a, unsigned int unit) {
#pragma unroll
    for (unsigned int gate = 0; gate < Cell::GATES; ++gate) {
        sums[Cell::input_sum(gate)] += a.input_bias[gate * a.hidden + unit];
        sums[Cell::hidden_sum(gate)] += a.hidden_bias[gate * a.hidden + unit];
    }
}

// ---- few rows: a warp computes a unit for four of them, and is bound by reading the weights

static constexpr unsigned int WARP_ROWS = 4;

// sums[s][r] += Σ weights[gate s][k] · vectors[row r][k], in every lane its share
template <unsigned int GATES, typename Sum>
static __device__ __forceinline__ void warp_products(float (&sums)[SUMS][WARP_ROWS], const float* weights, size_t apart,
                                                     const float* vectors, unsigned int length, unsigned int rows, Sum sum) {
    const unsigned int lane = threadIdx.x % WARP;
    if (length % 4 == 0 && is_aligned(weights) && is_aligned(vectors)) {
        for (unsigned int k = 4 * lane; k < length; k += 4 * WARP) {
            Pack<float> w[GATES];
#pragma unroll
            for (unsigned int gate = 0; gate < GATES; ++gate) {
                w[gate] = load_pack(weights + gate * apart + k);
            }
#pragma unroll
            for (unsigned int row = 0; row < WARP_ROWS; ++row) {
                if (row < rows) {
                    const Pack<float> v = load_pack(vectors + static_cast<size_t>(row) * length + k);
#pragma unroll
                    for (unsigned int gate = 0; gate < GATES; ++gate) {
#pragma unroll
                        for (unsigned int i = 0; i < 4; ++i) {
                            sums[sum(gate)][row] = fmaf(w[gate].values[i], v.values[i], sums[sum(gate)][row]);
                        }
                    }
                }
            }
        }
        return;
    }
    for (unsigned int k = lane; k < length; k += WARP) {
#pragma unroll
        for (unsigned int gate = 0; gate < GATES; ++gate) {
            const float w = weights[gate * apart + k];
#pragma unroll
            for (unsigned int row = 0; row < WARP_ROWS; ++row) {
                if (row < rows) {
                    sums[sum(gate)][row] = fmaf(w, vectors[static_cast<size_t>(row) * length + k], sums[sum(gate)][row]);
                }
            }
        }
    }
}

template <typename Cell> static __device__ __forceinline__ void by_warps(const Arguments& a) {
    const unsigned int unit = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    const unsigned int first = blockIdx.y * WARP_ROWS;
    if (unit >= a.hidden) {
        return;
    }
    const unsigned int rows = min(WARP_ROWS, a.batch - first);
    const size_t hidden = a.hidden;
    float sums[SUMS][WARP_ROWS] = {};
    warp_products<Cell::GATES>(sums, a.input_weights + static_cast<size_t>(unit) * a.input, hidden * a.input,
                               a.x + static_cast<size_t>(first) * a.input, a.input, rows,
                               [](unsigned int gate) { return Cell::input_sum(gate); });
    warp_products<Cell::GATES>(sums, a.hidden_weights + unit * hidden, hidden * hidden, a.h + first * hidden, a.hidden, rows,
                               [](unsigned int gate) { return Cell::hidden_sum(gate); });
    // Lane r finishes row r.
    float mine[SUMS] = {};
#pragma unroll
    for (unsigned int row = 0; row < WARP_ROWS; ++row) {
#pragma unroll
        for (unsigned int sum = 0; sum < SUMS; ++sum) {
            const float total = reduce_warp<Sum>(sums[sum][row]);
            mine[sum] = threadIdx.x % WARP == row ? total : mine[sum];
        }
    }
    const unsigned int row = threadIdx.x % WARP;
    if (row < rows) {
        add_biases<Cell>(mine, a, unit);
        Cell::finish(mine, a.h, a.c, a.h_out, a.c_out, (first + row) * hidden + unit);
    }
}

// ---- many rows: a block computes 8 units for 64 rows, from tiles in shared memory, in four groups of threads that share
// the numbers of each sum, so that there are enough warps on every multiprocessor

static constexpr unsigned int GROUPS = 4;
static constexpr unsigned int GROUP_THREADS = 128;
static constexpr unsigned int TILE_THREADS = GROUPS * GROUP_THREADS;
static constexpr unsigned int TILE_UNITS = 8;
static constexpr unsigned int TILE_ROWS = 64;
// Numbers of a sum that a group has in shared memory.
static constexpr unsigned int TILE_DEPTH = 16;
// Rows of a thread, which has all sums of one unit.
static constexpr unsigned int THREAD_ROWS = 4;

// Rows of the tiles have four numbers more than they need, to use other banks.
struct Tile {
    __align__(16) float weights[TILE_DEPTH][TILE_UNITS * 4 + 4]; // [k][unit][gate]
    __align__(16) float vectors[TILE_DEPTH][TILE_ROWS + 4];      // [k][row]
};

// What groups add up in the end fits into the same memory.
static_assert((GROUPS - 1) * GROUP_THREADS * SUMS * THREAD_ROWS * sizeof(float) <= GROUPS * sizeof(Tile), "partial sums");

// Four numbers from k on of a row; zero beyond its end, or if the row does not exist.
static __device__ __forceinline__ float4 four(const float* row, bool exists, unsigned int k, unsigned int length) {
    if (!exists || k >= length) {
        return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    if (length % 4 == 0 && is_aligned(row)) {
        return *reinterpret_cast<const float4*>(row + k);
    }
    return make_float4(row[k], k + 1 < length ? row[k + 1] : 0.0f, k + 2 < length ? row[k + 2] : 0.0f,
                       k + 3 < length ? row[k + 3] : 0.0f);
}

template <unsigned int WIDTH>
static __device__ __forceinline__ void put(float (&tile)[TILE_DEPTH][WIDTH], unsigned int k, unsigned int line, float4 numbers) {
    tile[k][line] = numbers.x;
    tile[k + 1][line] = numbers.y;
    tile[k + 2][line] = numbers.z;
    tile[k + 3][line] = numbers.w;
}

// sums[s][r] += Σ weights[gate s][unit][k] · vectors[row r][k] over this group's share of k
template <unsigned int GATES, typename Sum>
static __device__ __forceinline__ void tile_products(float (&sums)[SUMS][THREAD_ROWS], Tile& tile, const float* weights,
                                                     unsigned int hidden, const float* vectors, unsigned int length,
                                                     unsigned int rows, Sum sum) {
    const unsigned int group = threadIdx.x / GROUP_THREADS, thread = threadIdx.x % GROUP_THREADS;
    const unsigned int unit = thread / 16, first_row = thread % 16 * THREAD_ROWS;
    // This thread fetches four numbers of a unit's gate, and four of each of two rows.
    const unsigned int line = thread / 4, k = thread % 4 * 4;
    const unsigned int gate = line % 4, fetched_unit = blockIdx.x * TILE_UNITS + line / 4;
    const unsigned int row = blockIdx.y * TILE_ROWS + line;
    const bool has_unit = gate < GATES && fetched_unit < hidden;
    const float* weight_row = weights + (static_cast<size_t>(gate) * hidden + fetched_unit) * length;
    const float* vector_row = vectors + static_cast<size_t>(row) * length;
    const float* other_row = vector_row + static_cast<size_t>(TILE_ROWS / 2) * length;
    float4 next[3];
    const auto fetch = [&](unsigned int start) {
        const unsigned int at = start + group * TILE_DEPTH + k;
        next[0] = four(weight_row, has_unit, at, length);
        next[1] = four(vector_row, row < rows, at, length);
        next[2] = four(other_row, row + TILE_ROWS / 2 < rows, at, length);
    };
    fetch(0);
    for (unsigned int start = 0; start < length; start += GROUPS * TILE_DEPTH) {
        __syncthreads();
        put(tile.weights, k, line, next[0]);
        put(tile.vectors, k, line, next[1]);
        put(tile.vectors, k, line + TILE_ROWS / 2, next[2]);
        __syncthreads();
        fetch(start + GROUPS * TILE_DEPTH);
#pragma unroll
        for (unsigned int i = 0; i < TILE_DEPTH; ++i) {
            const float4 a = *reinterpret_cast<const float4*>(&tile.weights[i][4 * unit]);
            const float4 b = *reinterpret_cast<const float4*>(&tile.vectors[i][first_row]);
            const float gates[4] = {a.x, a.y, a.z, a.w}, numbers[THREAD_ROWS] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (unsigned int g = 0; g < GATES; ++g) {
#pragma unroll
                for (unsigned int r = 0; r < THREAD_ROWS; ++r) {
                    sums[sum(g)][r] = fmaf(gates[g], numbers[r], sums[sum(g)][r]);
                }
            }
        }
    }
}

// Adds the sums of all groups, in their order, for the first one.
static __device__ __forceinline__ void join_groups(float (&sums)[SUMS][THREAD_ROWS], float* memory) {
    const unsigned int group = threadIdx.x / GROUP_THREADS, thread = threadIdx.x % GROUP_THREADS;
    __syncthreads();
#pragma unroll
    for (unsigned int i = 0; i < SUMS * THREAD_ROWS; ++i) {
        if (group > 0) {
            memory[((group - 1) * SUMS * THREAD_ROWS + i) * GROUP_THREADS + thread] = sums[i / THREAD_ROWS][i % THREAD_ROWS];
        }
    }
    __syncthreads();
#pragma unroll
    for (unsigned int i = 0; i < SUMS * THREAD_ROWS; ++i) {
        for (unsigned int other = 0; other < GROUPS - 1 && group == 0; ++other) {
            sums[i / THREAD_ROWS][i % THREAD_ROWS] += memory[(other * SUMS * THREAD_ROWS + i) * GROUP_THREADS + thread];
        }
    }
}

template <typename Cell> static __device__ __forceinline__ void by_tiles(const Arguments& a) {
    __shared__ Tile tiles[GROUPS];
    Tile& tile = tiles[threadIdx.x / GROUP_THREADS];
    float sums[SUMS][THREAD_ROWS] = {};
    tile_products<Cell::GATES>(sums, tile, a.input_weights, a.hidden, a.x, a.input, a.batch,
                               [](unsigned int gate) { return Cell::input_sum(gate); });
    tile_products<Cell::GATES>(sums, tile, a.hidden_weights, a.hidden, a.h, a.hidden, a.batch,
                               [](unsigned int gate) { return Cell::hidden_sum(gate); });
    join_groups(sums, reinterpret_cast<float*>(tiles));
    const unsigned int unit = blockIdx.x * TILE_UNITS + threadIdx.x / 16;
    const unsigned int first_row = blockIdx.y * TILE_ROWS + threadIdx.x % 16 * THREAD_ROWS;
    if (threadIdx.x >= GROUP_THREADS || unit >= a.hidden) {
        return;
    }
#pragma unroll
    for (unsigned int row = 0; row < THREAD_ROWS; ++row) {
        if (first_row + row < a.batch) {
            float mine[SUMS] = {sums[0][row], sums[1][row], sums[2][row], sums[3][row]};
            add_biases<Cell>(mine, a, unit);
            Cell::finish(mine, a.h, a.c, a.h_out, a.c_out, static_cast<size_t>(first_row + row) * a.hidden + unit);
        }
    }
}

// The grid is groups of 8 units, and groups of rows: 4 in blocks of 256 by warps, 64 in blocks of 512 by tiles.
#define CELL(way, threads)                                                                                             \
    extern "C" __global__ void __launch_bounds__(threads)                                                              \
        lstm_cell_##way(const float* x, const float* h, const float* c, const float* input_weights,                    \
                        const float* hidden_weights, const float* input_bias, const float* hidden_bias, float* h_out,  \
                        float* c_out, unsigned int batch, unsigned int hidden, unsigned int input) {                   \
        by_##way<Lstm>({x, h, c, input_weights, hidden_weights, input_bias, hidden_bias, h_out, c_out, batch, hidden,  \
                        input});                                                                                       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(threads)                                                              \
        gru_cell_##way(const float* x, const float* h, const float* input_weights, const float* hidden_weights,        \
                       const float* input_bias, const float* hidden_bias, float* h_out, unsigned int batch,            \
                       unsigned int hidden, unsigned int input) {                                                      \
        by_##way<Gru>({x, h, nullptr, input_weights, hidden_weights, input_bias, hidden_bias, h_out, nullptr, batch,   \
                       hidden, input});                                                                                \
    }
CELL(warps, THREADS)
CELL(tiles, TILE_THREADS)
