// A sparse matrix times a vector, and from one format to the other. All sums are made in the same order on every call: none
// is added to memory by whoever comes first.

#include "common.cuh"

static constexpr unsigned int SPARSE_ENTRIES_PER_LANE = 4;
static constexpr unsigned int SPARSE_ENTRIES_PER_TILE = WARP * SPARSE_ENTRIES_PER_LANE;
static constexpr unsigned int SPARSE_ENTRIES_PER_WARP = 512;

// y ← A·x by CSR. Launched with `lanes` threads for each row, a power of two, at most a warp.
extern "C" __global__ void spmv_csr(
    const unsigned int* __restrict__ row_offsets, const unsigned int* __restrict__ column_indices,
    const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y, unsigned int rows,
    unsigned int lanes) {
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t row = thread / lanes;
    const unsigned int lane = thread % lanes;
    float sum = 0.0f;
    if (row < rows) {
        const unsigned int end = row_offsets[row + 1];
        unsigned int entry = row_offsets[row] + lane;
        // Two at once: neither has to wait for the other's element of x.
        for (; entry + lanes < end; entry += 2 * lanes) {
            const float first = __ldcs(values + entry) * x[__ldcs(column_indices + entry)];
            const float second = __ldcs(values + entry + lanes) * x[__ldcs(column_indices + entry + lanes)];
            sum += first + second;
        }
        if (entry < end) {
            sum += __ldcs(values + entry) * x[__ldcs(column_indices + entry)];
        }
    }
    for (unsigned int distance = lanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    }
    if (row < rows && lane == 0) {
        y[row] = sum;
    }
}

// Four entries of a COO matrix; beyond the last one, zeros in a row that does not exist.
struct Entries {
    unsigned int rows[SPARSE_ENTRIES_PER_LANE];
    float products[SPARSE_ENTRIES_PER_LANE];
};

static __device__ __forceinline__ Entries load_entries(
    const unsigned int* row_indices, const unsigned int* column_indices, const float* values, const float* x,
    unsigned int first, unsigned int entries, unsigned int rows) {
    Entries loaded;
    if (first + SPARSE_ENTRIES_PER_LANE <= entries && is_aligned(row_indices) && is_aligned(column_indices) &&
        is_aligned(values)) {
        const Pack<unsigned int> row = stream_pack(row_indices + first);
        const Pack<unsigned int> column = stream_pack(column_indices + first);
        const Pack<float> value = stream_pack(values + first);
#pragma unroll
        for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
            loaded.rows[i] = row.values[i];
            loaded.products[i] = value.values[i] * x[column.values[i]];
        }
        return loaded;
    }
#pragma unroll
    for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
        const bool exists = first + i < entries;
        loaded.rows[i] = exists ? row_indices[first + i] : rows;
        loaded.products[i] = exists ? values[first + i] * x[column_indices[first + i]] : 0.0f;
    }
    return loaded;
}

// The sum of a row, or of the part that a warp has of it.
struct RowSum {
    unsigned int row;
    float sum;
};

// For every lane, the sum of its last row in all lanes up to itself; rows rise from lane to lane.
static __device__ __forceinline__ RowSum scan_rows(RowSum own) {
    const unsigned int lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned int distance = 1; distance < WARP; distance *= 2) {
        const unsigned int row = __shfl_up_sync(ALL_LANES, own.row, distance);
        const float sum = __shfl_up_sync(ALL_LANES, own.sum, distance);
        if (lane >= distance && row == own.row) {
            own.sum = sum + own.sum;
        }
    }
    return own;
}

// y ← A·x by COO, but for what rows have beyond the warp in which they begin: that is left in `rest_rows` and `rest_sums`,
// one for each warp, with a row that does not exist where there is none.
//
// Every warp has SPARSE_ENTRIES_PER_WARP entries, in tiles of four for each lane. A row is written by the lane that sees its
// end; the lane that sees a row begin writes zeros to the rows without entries before it.
extern "C" __global__ void spmv_coo(
    const unsigned int* __restrict__ row_indices, const unsigned int* __restrict__ column_indices,
    const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y,
    unsigned int* __restrict__ rest_rows, float* __restrict__ rest_sums, unsigned int rows, unsigned int entries) {
    const unsigned int lane = threadIdx.x % WARP;
    const size_t warp = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    const size_t begin = warp * SPARSE_ENTRIES_PER_WARP;
    if (begin > entries) {
        return;
    }
    // The row before the first entry; none before the very first.
    const bool has_before = begin > 0;
    const unsigned int row_before = has_before ? row_indices[begin - 1] : 0;
    // The row that goes on from tile to tile, with its sum so far. All lanes know it.
    RowSum open = {has_before ? row_before : rows, 0.0f};
    bool has_open = has_before;
    if (!has_before && lane == 0) {
        rest_rows[warp] = rows; // all others close the row before, if only with a sum of nothing
    }
    const auto close = [&](unsigned int row, float sum) {
        if (has_before && row == row_before) {
            rest_rows[warp] = row;
            rest_sums[warp] = sum;
        } else if (row < rows) {
            y[row] = sum;
        }
    };
    for (unsigned int tile = 0; tile < SPARSE_ENTRIES_PER_WARP; tile += SPARSE_ENTRIES_PER_TILE) {
        const size_t first = begin + tile + lane * SPARSE_ENTRIES_PER_LANE;
        const Entries own = load_entries(row_indices, column_indices, values, x, first, entries, rows);
        RowSum last = {own.rows[SPARSE_ENTRIES_PER_LANE - 1], 0.0f};
#pragma unroll
        for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
            last.sum += own.rows[i] == last.row ? own.products[i] : 0.0f;
        }
        last = scan_rows(last);
        // What comes before the own entries: the last row of the lane before, or the open row.
        RowSum before = {__shfl_up_sync(ALL_LANES, last.row, 1), __shfl_up_sync(ALL_LANES, last.sum, 1)};
        const unsigned int first_row = __shfl_sync(ALL_LANES, own.rows[0], 0);
        const bool goes_on = has_open && open.row == first_row;
        if (lane == 0) {
            before = open;
        } else if (goes_on && before.row == open.row) {
            before.sum = open.sum + before.sum;
        }
        bool has_row = lane > 0 || has_open;
#pragma unroll
        for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
            if (!has_row || own.rows[i] != before.row) {
                if (has_row) {
                    close(before.row, before.sum);
                }
                for (unsigned int row = has_row ? before.row + 1 : 0; row < own.rows[i]; ++row) {
                    y[row] = 0.0f;
                }
                before = {own.rows[i], 0.0f};
                has_row = true;
            }
            before.sum += own.products[i];
        }
        // The last lane has what goes on: the same as the scan says, with the open row where that has not ended.
        open.row = __shfl_sync(ALL_LANES, before.row, WARP - 1);
        open.sum = __shfl_sync(ALL_LANES, before.sum, WARP - 1);
        has_open = true;
    }
    if (lane == 0) {
        close(open.row, open.sum);
    }
}

// Adds what rows have beyond the warp in which they begin, in the order of warps. Launched with one thread for each warp.
extern "C" __global__ void spmv_coo_rest(
    const unsigned int* rest_rows, const float* rest_sums, float* y, unsigned int rows, unsigned int warps) {
    const unsigned int warp = blockIdx.x * blockDim.x + threadIdx.x;
    if (warp >= warps) {
        return;
    }
    const unsigned int row = rest_rows[warp];
    // The first warp that has a rest of the row adds those of the others.
    if (row == rows || (warp > 0 && rest_rows[warp - 1] == row)) {
        return;
    }
    float sum = y[row];
    for (unsigned int other = warp; other < warps && rest_rows[other] == row; ++other) {
        sum += rest_sums[other];
    }
    y[row] = sum;
}

// row_offsets[r] ← number of entries in rows before r. Launched with a thread for every SPARSE_ENTRIES_PER_LANE entries and
// one more: the thread that sees a row begin, or the matrix end, writes the offsets of the rows that begin there.
extern "C" __global__ void coo_to_csr(
    const unsigned int* __restrict__ row_indices, unsigned int* __restrict__ row_offsets, unsigned int rows,
    unsigned int entries) {
    const size_t first = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * SPARSE_ENTRIES_PER_LANE;
    if (first > entries) {
        return;
    }
    Pack<unsigned int> own;
    if (first + SPARSE_ENTRIES_PER_LANE <= entries && is_aligned(row_indices)) {
        own = load_pack(row_indices + first);
    } else {
#pragma unroll
        for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
            own.values[i] = first + i < entries ? row_indices[first + i] : rows;
        }
    }
    // The first row whose offset is not known yet: that after the row of the entry before.
    unsigned int next = first > 0 ? row_indices[first - 1] + 1 : 0;
#pragma unroll
    for (unsigned int i = 0; i < SPARSE_ENTRIES_PER_LANE; ++i) {
        for (; next <= own.values[i]; ++next) {
            row_offsets[next] = first + i;
        }
    }
}

// row_indices[e] ← the row of entry e. Launched with `lanes` threads for each row.
extern "C" __global__ void csr_to_coo(
    const unsigned int* __restrict__ row_offsets, unsigned int* __restrict__ row_indices, unsigned int rows,
    unsigned int lanes) {
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t row = thread / lanes;
    if (row >= rows) {
        return;
    }
    const unsigned int end = row_offsets[row + 1];
    for (unsigned int entry = row_offsets[row] + thread % lanes; entry < end; entry += lanes) {
        row_indices[entry] = row;
    }
}
