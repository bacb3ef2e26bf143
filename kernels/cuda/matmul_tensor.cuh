// Products of matrices in the matrix units of Hopper: c ← a·bᵗ for a of m rows of k and b of n rows of k, of 16 or 8 bits.
//
// A block computes a tile of c. The tiles of a and b that it needs travel through shared memory in stages of 128 bytes of
// every row, which is the widest swizzle of the matrix units: the 16-byte chunk i of row r lies where chunk i ^ (r % 8) would,
// so that neither copies nor matrix units meet in a bank. Two groups of four warps multiply, each its own rows of the tile
// by all of its columns, with the sums in registers.
#pragma once

#include "copies.cuh"
#include "wgmma.cuh"

// Bytes of a row that make a stage, a copy, and a step of the matrix units.
static constexpr unsigned int STAGE_BYTES = 128;
static constexpr unsigned int CHUNK_BYTES = 16;
static constexpr unsigned int STEP_BYTES = 32;
// Threads that multiply together, and how many such groups of them.
static constexpr unsigned int GROUP = 128;
static constexpr unsigned int MULTIPLIERS = 2;
// Rows of a that one instruction multiplies.
static constexpr unsigned int ROWS_AT_ONCE = 64;

// ---- matrices and tiles

// Rows of bytes in global memory; data and rows begin at multiples of 16 bytes.
struct Matrix {
    const unsigned char* data;
    unsigned int rows;
    size_t row_bytes;

    template <typename T>
    __device__ Matrix(const T* data, size_t rows, size_t columns)
        : data(reinterpret_cast<const unsigned char*>(data)), rows(rows), row_bytes(columns * sizeof(T)) {}

    __device__ unsigned int stages() const { return (row_bytes + STAGE_BYTES - 1) / STAGE_BYTES; }
};

// Each group of multipliers has `HALVES` times 64 rows of a tile that is `WIDTH` columns wide.
template <unsigned int HALVES_, unsigned int WIDTH_, unsigned int STAGES_> struct Tile {
    static constexpr unsigned int HALVES = HALVES_;
    static constexpr unsigned int WIDTH = WIDTH_;
    static constexpr unsigned int STAGES = STAGES_;
    static constexpr unsigned int GROUP_ROWS = HALVES * ROWS_AT_ONCE;
    static constexpr unsigned int ROWS = MULTIPLIERS * GROUP_ROWS;
    // Sums of a thread in one half.
    static constexpr unsigned int SUMS = ROWS_AT_ONCE * WIDTH / GROUP;
    static constexpr unsigned int LEFT_BYTES = ROWS * STAGE_BYTES;
    static constexpr unsigned int BYTES = LEFT_BYTES + WIDTH * STAGE_BYTES;
    static constexpr unsigned int ALL_BYTES = STAGES * BYTES;
};

// The first row and column of a block's tile.
struct Corner {
    unsigned int row;
    unsigned int column;
};

// Blocks that run at the same time get tiles of about a square, so that they share rows of a and b in the cache.
template <typename Shape> static __device__ __forceinline__ Corner corner_of_block(unsigned int m, unsigned int n) {
    constexpr unsigned int BAND = 2048 / Shape::ROWS;
    const unsigned int down = (m + Shape::ROWS - 1) / Shape::ROWS;
    const unsigned int across = (n + Shape::WIDTH - 1) / Shape::WIDTH;
    const unsigned int band = blockIdx.x / (BAND * across);
    const unsigned int within = blockIdx.x % (BAND * across);
    const unsigned int height = min(BAND, down - band * BAND);
    return {(band * BAND + within % height) * Shape::ROWS, within / height * Shape::WIDTH};
}

// ---- copies

static __device__ __forceinline__ void store_chunk(unsigned int to, uint4 chunk) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(chunk.x), "r"(chunk.y), "r"(chunk.z), "r"(chunk.w)
                 : "memory");
}

// The share of one thread in copying `ROWS` rows of a matrix, a stage at a time.
template <unsigned int ROWS, unsigned int THREADS> struct Copier {
    static constexpr unsigned int CHUNKS = STAGE_BYTES / CHUNK_BYTES;
    static constexpr unsigned int STRIDE = THREADS / CHUNKS;
    // Chunks that a thread copies.
    static constexpr unsigned int SHARE = ROWS / STRIDE;
    static_assert(STRIDE % 8 == 0, "all rows of a thread have the same swizzle");

    const unsigned char* start;
    size_t row_bytes;
    // Where the thread's chunk lies in a row, and in the tile in shared memory.
    unsigned int within_row;
    unsigned int offset;
    // Rows below the thread's first that exist.
    int rows;

    __device__ __forceinline__ Copier(const Matrix& from, unsigned int first_row, unsigned int thread) {
        const unsigned int row = thread / CHUNKS;
        const unsigned int chunk = thread % CHUNKS;
        row_bytes = from.row_bytes;
        within_row = chunk * CHUNK_BYTES;
        offset = row * STAGE_BYTES + (chunk ^ row % 8) * CHUNK_BYTES;
        rows = static_cast<int>(from.rows) - static_cast<int>(first_row + row);
        start = from.data + (rows > 0 ? (first_row + row) * row_bytes : 0);
    }

    // Copies that arrive later.
    __device__ __forceinline__ void copy(unsigned int to, size_t first_byte) const {
        const size_t byte = first_byte + within_row;
        const int rows = byte < row_bytes ? this->rows : 0;
        const unsigned char* from = start + (rows > 0 ? byte : 0);
#pragma unroll
        for (unsigned int i = 0; i < SHARE; ++i) {
            const bool exists = static_cast<int>(i * STRIDE) < rows;
            copy_later(to + offset + i * STRIDE * STAGE_BYTES, exists ? from : start, exists);
            from += STRIDE * row_bytes;
        }
    }

    // To registers, from which `store` takes it.
    struct Chunks {
        uint4 values[SHARE];
    };

    __device__ __forceinline__ Chunks load(size_t first_byte) const {
        Chunks chunks;
        const size_t byte = first_byte + within_row;
        const int rows = byte < row_bytes ? this->rows : 0;
        const unsigned char* from = start + byte;
#pragma unroll
        for (unsigned int i = 0; i < SHARE; ++i) {
            const bool exists = static_cast<int>(i * STRIDE) < rows;
            chunks.values[i] = exists ? *reinterpret_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
            from += STRIDE * row_bytes;
        }
        return chunks;
    }

    __device__ __forceinline__ void store(const Chunks& chunks, unsigned int to) const {
#pragma unroll
        for (unsigned int i = 0; i < SHARE; ++i) {
            store_chunk(to + offset + i * STRIDE * STAGE_BYTES, chunks.values[i]);
        }
    }
};

// Copies of both operands of a tile, stage by stage.
template <typename Shape, unsigned int THREADS> struct Copiers {
    Copier<Shape::ROWS, THREADS> left;
    Copier<Shape::WIDTH, THREADS> right;

    __device__ __forceinline__ Copiers(const Matrix& a, const Matrix& b, Corner corner, unsigned int thread)
        : left(a, corner.row, thread), right(b, corner.column, thread) {}

    __device__ __forceinline__ void copy(unsigned int to, unsigned int stage) const {
        const size_t first_byte = static_cast<size_t>(stage) * STAGE_BYTES;
        left.copy(to, first_byte);
        right.copy(to + Shape::LEFT_BYTES, first_byte);
        end_of_copies();
    }

    // The same by way of registers.
    struct Chunks {
        typename Copier<Shape::ROWS, THREADS>::Chunks left;
        typename Copier<Shape::WIDTH, THREADS>::Chunks right;
    };

    __device__ __forceinline__ Chunks load(unsigned int stage) const {
        const size_t first_byte = static_cast<size_t>(stage) * STAGE_BYTES;
        return {left.load(first_byte), right.load(first_byte)};
    }

    __device__ __forceinline__ void store(const Chunks& chunks, unsigned int to) const {
        left.store(chunks.left, to);
        right.store(chunks.right, to + Shape::LEFT_BYTES);
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// ---- stages

// Starts the products of one stage, for a group's rows of one half.
template <typename T, typename Shape, typename Sum>
static __device__ __forceinline__ void multiply_stage(
    Sum (&sums)[Shape::SUMS], unsigned int stage, unsigned int first_row, bool accumulate) {
    const unsigned long long left = describe_rows(stage + first_row * STAGE_BYTES);
    const unsigned long long right = describe_rows(stage + Shape::LEFT_BYTES);
#pragma unroll
    for (unsigned int step = 0; step < STAGE_BYTES / STEP_BYTES; ++step) {
        const unsigned int along = step * STEP_BYTES >> 4;
        multiply(T(), sums, left + along, right + along, accumulate || step > 0);
    }
}

// Slots of shared memory that pass from those who copy to those who multiply and back: every slot has a barrier for either
// way, `filled` and `emptied`.
template <typename Shape> struct Slots {
    unsigned int tiles;
    static constexpr unsigned int BYTES = Shape::ALL_BYTES + 16 * Shape::STAGES;

    __device__ __forceinline__ unsigned int tile(unsigned int stage) const { return tiles + stage % Shape::STAGES * Shape::BYTES; }
    __device__ __forceinline__ unsigned int filled(unsigned int stage) const {
        return tiles + Shape::ALL_BYTES + stage % Shape::STAGES * 16;
    }
    __device__ __forceinline__ unsigned int emptied(unsigned int stage) const { return filled(stage) + 8; }
    static __device__ __forceinline__ unsigned int parity(unsigned int stage) { return stage / Shape::STAGES % 2; }

    __device__ __forceinline__ void start() const {
        if (threadIdx.x == 0) {
            for (unsigned int stage = 0; stage < Shape::STAGES; ++stage) {
                start_barrier(filled(stage), GROUP);
                start_barrier(emptied(stage), MULTIPLIERS * GROUP / WARP);
            }
        }
        __syncthreads();
    }
};

// What the group of copying threads does: fills slots as they become free.
template <typename Shape>
static __device__ __forceinline__ void fill_slots(
    const Slots<Shape>& slots, const Matrix& a, const Matrix& b, Corner corner, unsigned int stages) {
    // A stage is announced when so many later ones are on their way. The multipliers give a slot back when they have begun
    // with the next stage: one more, and both sides would wait for each other.
    constexpr unsigned int AHEAD = Shape::STAGES - 2;
    const Copiers<Shape, GROUP> copiers(a, b, corner, threadIdx.x % GROUP);
    for (unsigned int stage = 0; stage < stages + AHEAD; ++stage) {
        if (stage < stages) {
            if (stage >= Shape::STAGES) {
                wait_for_round(slots.emptied(stage), slots.parity(stage) ^ 1);
            }
            copiers.copy(slots.tile(stage), stage);
        } else {
            end_of_copies();
        }
        if (stage >= AHEAD) {
            wait_for_copies<AHEAD>();
            show_to_matrix_units();
            arrive(slots.filled(stage - AHEAD));
        }
    }
}

// A warp's word that it needs a stage no more.
template <typename Shape> static __device__ __forceinline__ void give_back(const Slots<Shape>& slots, unsigned int stage) {
    if (threadIdx.x % WARP == 0) {
        arrive(slots.emptied(stage));
    }
}

// sums ← a·bᵗ of a group's rows, stage by stage: products of a stage run while the next one is waited for.
template <typename T, typename Shape, typename Sum>
static __device__ __forceinline__ void drain_slots(
    const Slots<Shape>& slots, Sum (&sums)[Shape::HALVES][Shape::SUMS], unsigned int group, unsigned int stages) {
    for (unsigned int stage = 0; stage < stages; ++stage) {
        wait_for_round(slots.filled(stage), slots.parity(stage));
        begin_products();
#pragma unroll
        for (unsigned int half = 0; half < Shape::HALVES; ++half) {
            const unsigned int first_row = group * Shape::GROUP_ROWS + half * ROWS_AT_ONCE;
            multiply_stage<T, Shape>(sums[half], slots.tile(stage), first_row, stage > 0);
        }
        end_of_products();
        if (stage > 0) {
            wait_for_products<1>();
            give_back(slots, stage - 1);
        }
    }
    wait_for_products<0>(sums);
}

// Registers of a thread are taken from those who copy, and given to those who multiply.
static __device__ __forceinline__ void few_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
static __device__ __forceinline__ void many_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); }

#endif

// ---- results

// A warp has 16 rows of a half, a thread two of them: this one, and the eighth below it.
template <typename Shape>
static __device__ __forceinline__ unsigned int first_row_of_thread(Corner corner, unsigned int group, unsigned int half) {
    const unsigned int warp = threadIdx.x / WARP % (GROUP / WARP);
    return corner.row + group * Shape::GROUP_ROWS + half * ROWS_AT_ONCE + warp * 16 + threadIdx.x % WARP / 4;
}

// Calls finish(row, column, first, second) for the sums of a thread, which has two neighbours in every eight columns.
template <typename Shape, typename Sum, typename Finish>
static __device__ __forceinline__ void for_pairs(
    const Sum (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group, Finish finish) {
#pragma unroll
    for (unsigned int half = 0; half < Shape::HALVES; ++half) {
        const unsigned int row = first_row_of_thread<Shape>(corner, group, half);
#pragma unroll
        for (unsigned int i = 0; i < Shape::SUMS; i += 4) {
            const unsigned int column = corner.column + i * 2 + threadIdx.x % 4 * 2;
            finish(row, column, sums[half][i], sums[half][i + 1]);
            finish(row + 8, column, sums[half][i + 2], sums[half][i + 3]);
        }
    }
}

template <typename T> struct __align__(2 * sizeof(T)) Pair {
    T values[2];
};

// Two neighbours of a row of c, as far as they exist.
template <typename T>
static __device__ __forceinline__ void store_pair(T* c, size_t m, size_t n, size_t row, size_t column, float first, float second) {
    if (row >= m || column >= n) {
        return;
    }
    T* to = c + row * n + column;
    if (n % 2 == 0) {
        *reinterpret_cast<Pair<T>*>(to) = Pair<T>{{narrow<T>(first), narrow<T>(second)}};
        return;
    }
    to[0] = narrow<T>(first);
    if (column + 1 < n) {
        to[1] = narrow<T>(second);
    }
}

// Stores sums as 16-bit floats. Neighbouring lanes swap words, so that each has four neighbours of a row, and two lanes
// write a whole sector of memory.
template <typename T, typename Shape>
static __device__ __forceinline__ void store_halves(
    const float (&sums)[Shape::HALVES][Shape::SUMS], Corner corner, unsigned int group, T* c, size_t m, size_t n) {
    if (n % 4 != 0) {
        for_pairs<Shape>(sums, corner, group, [=](size_t row, size_t column, float first, float second) {
            store_pair(c, m, n, row, column, first, second);
        });
        return;
    }
    const unsigned int lane = threadIdx.x % WARP;
    const bool is_odd = lane % 2 == 1;
    const unsigned int first_column = corner.column + lane % 2 * 8 + lane % 4 / 2 * 4;
#pragma unroll
    for (unsigned int half = 0; half < Shape::HALVES; ++half) {
        const unsigned int first_row = first_row_of_thread<Shape>(corner, group, half);
#pragma unroll
        for (unsigned int i = 0; i < Shape::SUMS; i += 8) {
#pragma unroll
            for (unsigned int below = 0; below < 2; ++below) {
                const unsigned int near = narrow_pair(T(), sums[half][i + 2 * below], sums[half][i + 2 * below + 1]);
                const unsigned int far = narrow_pair(T(), sums[half][i + 2 * below + 4], sums[half][i + 2 * below + 5]);
                const unsigned int other = __shfl_xor_sync(ALL_LANES, is_odd ? near : far, 1);
                const uint2 four = is_odd ? uint2{other, far} : uint2{near, other};
                const size_t row = first_row + 8 * below;
                const size_t column = first_column + i * 2;
                if (row < m && column < n) {
                    *reinterpret_cast<uint2*>(c + row * n + column) = four;
                }
            }
        }
    }
}

// ---- whole products

// Threads of a block in which one group copies.
static constexpr unsigned int TENSOR_THREADS = (MULTIPLIERS + 1) * GROUP;

// Tiles: the larger one is, the more often what was copied is used; small products have too few large ones for all
// multiprocessors.
using Wide = Tile<1, 256, 4>;
using Square = Tile<1, 128, 4>;
using Slim = Tile<1, 64, 4>;

// sums ← a·bᵗ by two groups that multiply and one that copies; finish(sums, corner, group) stores those of a group. Devices
// other than Hopper have no code for it.
template <typename T, typename Sum, typename Shape, typename Finish>
static __device__ __forceinline__ void tensor_product(const Matrix& a, const Matrix& b, Finish finish) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char shared[];
    const Slots<Shape> slots{shared_address(shared)};
    slots.start();
    const Corner corner = corner_of_block<Shape>(a.rows, b.rows);
    const unsigned int stages = a.stages();
    const unsigned int group = threadIdx.x / GROUP;
    if (group == MULTIPLIERS) {
        few_registers();
        fill_slots(slots, a, b, corner, stages);
    } else {
        many_registers();
        Sum sums[Shape::HALVES][Shape::SUMS];
        drain_slots<T, Shape>(slots, sums, group, stages);
        finish(sums, corner, group);
    }
#endif
}
