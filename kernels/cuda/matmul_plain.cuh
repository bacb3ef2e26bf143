// Products c ← a·bᵗ on every device and at every size, without matrix units: for devices other than Hopper, and for rows
// that do not begin at multiples of 16 bytes.
#pragma once

#include "common.cuh"

// Blocks of 256 threads compute tiles of 64 × 64, a thread 4 × 4 of them.
static constexpr unsigned int PLAIN_TILE = 64;
static constexpr unsigned int PLAIN_DEPTH = 16;
static constexpr unsigned int PLAIN_SHARE = 4;

// left(row, p) and right(column, p) give elements of a and b in the type of the sums; finish(row, column, sum) takes a sum.
template <typename Sum, typename Left, typename Right, typename Finish>
static __device__ __forceinline__ void plain_product(size_t m, size_t n, size_t k, Left left, Right right, Finish finish) {
    // Rows are four elements longer than a tile, so that a warp's writes spread over the banks.
    __shared__ __align__(16) Sum tile_a[PLAIN_DEPTH][PLAIN_TILE + 4];
    __shared__ __align__(16) Sum tile_b[PLAIN_DEPTH][PLAIN_TILE + 4];
    const size_t first_row = static_cast<size_t>(blockIdx.y) * PLAIN_TILE;
    const size_t first_column = static_cast<size_t>(blockIdx.x) * PLAIN_TILE;
    const unsigned int down = threadIdx.x / 16 * PLAIN_SHARE;
    const unsigned int across = threadIdx.x % 16 * PLAIN_SHARE;
    const unsigned int line = threadIdx.x / 4;
    const unsigned int along = threadIdx.x % 4 * PLAIN_SHARE;
    Sum sums[PLAIN_SHARE][PLAIN_SHARE] = {};
    for (size_t depth = 0; depth < k; depth += PLAIN_DEPTH) {
#pragma unroll
        for (unsigned int i = along; i < along + PLAIN_SHARE; ++i) {
            const bool is_inside = depth + i < k;
            tile_a[i][line] = is_inside && first_row + line < m ? left(first_row + line, depth + i) : Sum(0);
            tile_b[i][line] = is_inside && first_column + line < n ? right(first_column + line, depth + i) : Sum(0);
        }
        __syncthreads();
#pragma unroll
        for (unsigned int p = 0; p < PLAIN_DEPTH; ++p) {
#pragma unroll
            for (unsigned int i = 0; i < PLAIN_SHARE; ++i) {
#pragma unroll
                for (unsigned int j = 0; j < PLAIN_SHARE; ++j) {
                    sums[i][j] += tile_a[p][down + i] * tile_b[p][across + j];
                }
            }
        }
        __syncthreads();
    }
    for (unsigned int i = 0; i < PLAIN_SHARE && first_row + down + i < m; ++i) {
        for (unsigned int j = 0; j < PLAIN_SHARE && first_column + across + j < n; ++j) {
            finish(first_row + down + i, first_column + across + j, sums[i][j]);
        }
    }
}
