// One result of all blocks of a grid, by one launch.
//
// Every block hands in what it has found, and the block that began last joins it all. It waits for the others, and may do so:
// they have begun, so they are running or done. That is shorter than to find out which block is done last, where each one waits
// until its result can be seen, and then for its turn. Results are joined in the order of the blocks' numbers and not of time:
// they have the same bits in every call.
//
// For grids of one dimension and at most MOST_BLOCKS blocks of whole warps, one after the other: two at once would take each
// other's results. Every block hands in, once, with all of its threads. What is handed in is all that others see of a block.
#pragma once

#include "common.cuh"

static constexpr unsigned int MOST_BLOCKS = 8192;

// What blocks of the running grid have handed in, or 0. All are 0 after it.
static __device__ unsigned long long handed_in[MOST_BLOCKS];
static __device__ unsigned int blocks_begun;

// A block's place in it. To be made at the beginning of a kernel: nobody waits for the answer before it is needed.
class Meeting {
public:
    __device__ __forceinline__ Meeting() {
        if (threadIdx.x == 0) {
            // It counts up to the last block and is back at 0 after it, for the next grid.
            number = atomicInc(&blocks_begun, gridDim.x - 1);
        }
    }

    // Hands in what thread 0 knows, which is not 0. True for all threads of the one block that joins what all have handed in.
    __device__ __forceinline__ bool hand_in(unsigned long long result) const {
        __shared__ bool is_last;
        if (threadIdx.x == 0) {
            static_cast<volatile unsigned long long*>(handed_in)[blockIdx.x] = result;
            is_last = number == gridDim.x - 1;
        }
        __syncthreads();
        return is_last;
    }

    // Calls `join` with the results that are this thread's to join.
    template <typename Join> static __device__ __forceinline__ void take(Join join) {
        // Results that are looked at before the first of them is waited for.
        constexpr unsigned int AT_ONCE = 4;
        volatile unsigned long long* const all = handed_in;
        for (unsigned int first = threadIdx.x; first < gridDim.x; first += AT_ONCE * blockDim.x) {
            unsigned long long results[AT_ONCE];
#pragma unroll
            for (unsigned int i = 0; i < AT_ONCE; ++i) {
                const unsigned int block = first + i * blockDim.x;
                results[i] = block < gridDim.x ? all[block] : 0;
            }
#pragma unroll
            for (unsigned int i = 0; i < AT_ONCE; ++i) {
                const unsigned int block = first + i * blockDim.x;
                if (block < gridDim.x) {
                    while (results[i] == 0) {
                        results[i] = all[block];
                    }
                    all[block] = 0;
                    join(results[i]);
                }
            }
        }
    }

    // out ← factor · the sum over all blocks of `sum`, which thread 0 of each has.
    __device__ __forceinline__ void add_up(float sum, float factor, float* out) const {
        __shared__ float partial[MOST_WARPS];
        if (!hand_in(1ull << 32 | __float_as_uint(sum))) {
            return;
        }
        float total = 0.0f;
        take([&total](unsigned long long result) { total += __uint_as_float(static_cast<unsigned int>(result)); });
        total = reduce_block<Sum>(total, partial);
        if (threadIdx.x == 0) {
            *out = factor * total;
        }
    }

private:
    unsigned int number = 0;
};
