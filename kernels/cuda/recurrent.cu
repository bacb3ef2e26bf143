// One step of a recurrent cell: products with two weight matrices and the functions of all gates, in one launch.
//
// Weights are [gate][unit][number], states [row of the batch][unit]. Every thread ends up with all sums of a hidden unit: the
// gates i, f, g, o of an LSTM; or r, z, the part of n that comes from the input and the part that comes from the state of a GRU.

#include "common.cuh"

static constexpr unsigned int THREADS = 256;
static constexpr unsigned int SUMS = 4;

static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
// Near zero tanhf is a polynomial, and it is exact to some units in the last place everywhere.
static __device__ __forceinline__ float flat(float x) { return tanhf(x); }

// What distinguishes the two cells; c is null in a GRU.
struct Lstm {
    static constexpr unsigned int GATES = 4;
    static __device__ constexpr unsigned int input_sum(unsigned int gate) { return gate; }
    static __device__ constexpr unsigned int hidden_sum(unsigned int gate) { return gate; }
    static __device__ __forceinline__ void finish(const float (&sums)[SUMS], const float* h, const float* c, float* h_out,
                                                  float* c_out, size_t place) {
        const float next = sigmoid(sums[1]) * c[place] + sigmoid(sums[0]) * flat(sums[2]);
        c_out[place] = next;
        h_out[place] = sigmoid(sums[3]) * flat(next);
    }
};

struct Gru {
    static constexpr unsigned int GATES = 3;
    static __device__ constexpr unsigned int input_sum(unsigned int gate) { return gate; }
    static __device__ constexpr unsigned int hidden_sum(unsigned int gate) { return gate == 2 ? 3 : gate; }
    static __device__ __forceinline__ void finish(const float (&sums)[SUMS], const float* h, const float* c, float* h_out,
                                                  float* c_out, size_t place) {
        const float z = sigmoid(sums[1]);
        const float n = flat(sums[2] + sigmoid(sums[0]) * sums[3]);
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
    unsigned int start = 0;
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
    for (unsigned int k = start + lane; k < length; k += WARP) {
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

// ---- many rows: a block computes 16 units for 64 rows, from tiles in shared memory

static constexpr unsigned int TILE_UNITS = 16;
static constexpr unsigned int TILE_ROWS = 64;
static constexpr unsigned int TILE_DEPTH = 16;
// Rows of a thread, which has all sums of one unit.
static constexpr unsigned int THREAD_ROWS = 4;

// From number to number of a tile: its width, and something to use other banks.
static constexpr unsigned int TILE_STEP = 64 + 4;

struct Tile {
    __align__(16) float weights[TILE_DEPTH][TILE_STEP]; // [k][unit][gate]
    __align__(16) float vectors[TILE_DEPTH][TILE_STEP]; // [k][row]
};

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

// sums[s][r] += Σ weights[gate s][unit][k] · vectors[row r][k]
template <unsigned int GATES, typename Sum>
static __device__ __forceinline__ void tile_products(float (&sums)[SUMS][THREAD_ROWS], Tile& tile, const float* weights,
                                                     unsigned int hidden, const float* vectors, unsigned int length,
                                                     unsigned int rows, Sum sum) {
    const unsigned int unit = threadIdx.x / 16, first_row = threadIdx.x % 16 * THREAD_ROWS;
    // This thread fetches four numbers of a unit's gate, and four of a row.
    const unsigned int line = threadIdx.x / 4, k = threadIdx.x % 4 * 4;
    const unsigned int gate = line % 4, fetched_unit = blockIdx.x * TILE_UNITS + line / 4;
    const unsigned int row = blockIdx.y * TILE_ROWS + line;
    const bool has_unit = gate < GATES && fetched_unit < hidden, has_row = row < rows;
    const float* weight_row = weights + (static_cast<size_t>(gate) * hidden + fetched_unit) * length;
    const float* vector_row = vectors + static_cast<size_t>(row) * length;
    float4 next_weights = four(weight_row, has_unit, k, length), next_vectors = four(vector_row, has_row, k, length);
    for (unsigned int start = 0; start < length; start += TILE_DEPTH) {
        __syncthreads();
        const float w[4] = {next_weights.x, next_weights.y, next_weights.z, next_weights.w};
        const float v[4] = {next_vectors.x, next_vectors.y, next_vectors.z, next_vectors.w};
#pragma unroll
        for (unsigned int i = 0; i < 4; ++i) {
            tile.weights[k + i][line] = w[i];
            tile.vectors[k + i][line] = v[i];
        }
        __syncthreads();
        next_weights = four(weight_row, has_unit, start + TILE_DEPTH + k, length);
        next_vectors = four(vector_row, has_row, start + TILE_DEPTH + k, length);
#pragma unroll
        for (unsigned int i = 0; i < TILE_DEPTH; ++i) {
            const float4 a = *reinterpret_cast<const float4*>(&tile.weights[i][4 * unit]);
            const float4 b = *reinterpret_cast<const float4*>(&tile.vectors[i][first_row]);
            const float gates[4] = {a.x, a.y, a.z, a.w}, rows[THREAD_ROWS] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (unsigned int g = 0; g < GATES; ++g) {
#pragma unroll
                for (unsigned int r = 0; r < THREAD_ROWS; ++r) {
                    sums[sum(g)][r] = fmaf(gates[g], rows[r], sums[sum(g)][r]);
                }
            }
        }
    }
}

template <typename Cell> static __device__ __forceinline__ void by_tiles(const Arguments& a) {
    __shared__ Tile tile;
    float sums[SUMS][THREAD_ROWS] = {};
    tile_products<Cell::GATES>(sums, tile, a.input_weights, a.hidden, a.x, a.input, a.batch,
                               [](unsigned int gate) { return Cell::input_sum(gate); });
    tile_products<Cell::GATES>(sums, tile, a.hidden_weights, a.hidden, a.h, a.hidden, a.batch,
                               [](unsigned int gate) { return Cell::hidden_sum(gate); });
    const unsigned int unit = blockIdx.x * TILE_UNITS + threadIdx.x / 16;
    const unsigned int first_row = blockIdx.y * TILE_ROWS + threadIdx.x % 16 * THREAD_ROWS;
    if (unit >= a.hidden) {
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

// Blocks of 256; the grid is groups of units (8 by warps, 16 by tiles), groups of rows (4 by warps, 64 by tiles).
#define CELL(way)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        lstm_cell_##way(const float* x, const float* h, const float* c, const float* input_weights,                    \
                        const float* hidden_weights, const float* input_bias, const float* hidden_bias, float* h_out,  \
                        float* c_out, unsigned int batch, unsigned int hidden, unsigned int input) {                   \
        by_##way<Lstm>({x, h, c, input_weights, hidden_weights, input_bias, hidden_bias, h_out, c_out, batch, hidden,  \
                        input});                                                                                       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        gru_cell_##way(const float* x, const float* h, const float* input_weights, const float* hidden_weights,        \
                       const float* input_bias, const float* hidden_bias, float* h_out, unsigned int batch,            \
                       unsigned int hidden, unsigned int input) {                                                      \
        by_##way<Gru>({x, h, nullptr, input_weights, hidden_weights, input_bias, hidden_bias, h_out, nullptr, batch,   \
                       hidden, input});                                                                                \
    }
CELL(warps)
CELL(tiles)
