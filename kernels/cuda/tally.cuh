// The mean of losses over all warps of a grid, by one launch.
//
// Every warp adds its share to the tally of its block, and the last one of a block adds that to the tally of the grid: one atomic
// operation each, which counts as well, so whoever is last knows the mean without a look at anything else. That is shorter than
// a meeting (meeting.cuh), at a price: shares are whole numbers of units, as a sum of whole numbers has the same bits in any
// order. That is for losses, which are differences of logarithms and logits: their rounding is many units.
//
// For grids of one dimension and at most MOST_TALLIED warps, one after the other.
#pragma once

#include "common.cuh"

static constexpr unsigned int MOST_TALLIED = 16383;

// A tally is the number of warps, below it a mark for outsiders, and below that the sum of shares.
static constexpr unsigned long long ONE_WARP = 1ull << 50;
static constexpr unsigned long long HAS_OUTSIDERS = 1ull << 49;
static constexpr float UNITS_OF_ONE = 1ull << 36;
static constexpr float LARGEST_MEAN = 1ull << 12;
static_assert(MOST_TALLIED * ONE_WARP / ONE_WARP == MOST_TALLIED, "all warps can be counted");
static_assert(2.0f * LARGEST_MEAN * UNITS_OF_ONE == HAS_OUTSIDERS, "no sum of shares reaches the mark, however it is rounded");

// All are 0 between grids. Outsiders are warps whose share would not fit, or is no finite number.
static __device__ unsigned long long tally_of_grid;
static __device__ unsigned int outsiders;
static __device__ float share_of_outsiders;

// A block's part in it, to be made at the beginning of a kernel by all threads.
class Tally {
public:
    __device__ __forceinline__ Tally() {
        if (threadIdx.x == 0) {
            *of_block() = 0;
        }
        __syncthreads();
    }

    // out ← the sum over all warps of `loss`, which lane 0 of each has, over `rows`. Called by all threads.
    __device__ __forceinline__ void add_up(float loss, size_t rows, float* out) const {
        if (threadIdx.x % WARP != 0) {
            return;
        }
        const unsigned int warps = blockDim.x / WARP;
        // No loss is negative, but for rounding.
        const float share = loss < 0.0f ? 0.0f : loss * (1.0f / static_cast<float>(rows));
        const bool fits = share * static_cast<float>(gridDim.x * warps) < LARGEST_MEAN;
        const unsigned long long mine = ONE_WARP + (fits ? __float2ull_rn(share * UNITS_OF_ONE) : leave_outside(share));
        const unsigned long long block = add(of_block(), mine, warps);
        if (block == 0) {
            return;
        }
        const unsigned long long grid = add(&tally_of_grid, block, gridDim.x * warps);
        if (grid == 0) {
            return;
        }
        tally_of_grid = 0;
        *out = __ull2float_rn(grid % HAS_OUTSIDERS) / UNITS_OF_ONE + (grid & HAS_OUTSIDERS ? take_outsiders() : 0.0f);
    }

private:
    static __device__ __forceinline__ unsigned long long* of_block() {
        __shared__ unsigned long long tally;
        return &tally;
    }

    // Adds to a tally, and gives it if it is complete; else 0.
    static __device__ __forceinline__ unsigned long long add(
        unsigned long long* tally, unsigned long long mine, unsigned int warps) {
        const unsigned long long all = atomicAdd(tally, mine) + mine;
        return all / ONE_WARP == warps ? all : 0;
    }

    // The mark of the first one, or nothing. Here the order of sums is that in time; it makes a difference from three on.
    static __device__ __noinline__ unsigned long long leave_outside(float share) {
        atomicAdd(&share_of_outsiders, share);
        __threadfence();
        return atomicAdd(&outsiders, 1) == 0 ? HAS_OUTSIDERS : 0;
    }

    static __device__ __noinline__ float take_outsiders() {
        __threadfence();
        outsiders = 0;
        return atomicExch(&share_of_outsiders, 0.0f);
    }
};
