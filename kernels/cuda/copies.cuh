// Copies from global to shared memory that go on while threads do something else (from compute capability 8.0 on), and barriers
// by which some threads tell others that theirs are there (from 9.0 on).
#pragma once

#include "common.cuh"

static __device__ __forceinline__ unsigned int shared_address(const void* pointer) {
    return static_cast<unsigned int>(__cvta_generic_to_shared(pointer));
}

// ---- copies

// BYTES that arrive later, or zeros where they do not exist; then nothing is read.
template <unsigned int BYTES = 16>
static __device__ __forceinline__ void copy_later(unsigned int to, const void* from, bool exists) {
    const unsigned int bytes = exists ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        static_assert(BYTES == 4, "copies of 4 or 16 bytes");
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
}

static __device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the last PENDING groups of this thread's copies are there.
template <unsigned int PENDING> static __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Waits for all of them, also for those that no `end_of_copies` follows.
static __device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// What this thread wrote to shared memory may be read by the matrix units, once others know of it.
static __device__ __forceinline__ void show_to_matrix_units() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- barriers: arrivals of some threads, waited for by others

static __device__ __forceinline__ void start_barrier(unsigned int barrier, unsigned int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned int barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Waits for the end of an even or an odd round of arrivals.
static __device__ __forceinline__ void wait_for_round(unsigned int barrier, unsigned int parity) {
    asm volatile("{\n.reg .pred over;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
