// The matrix units of Hopper: four warps multiply matrices in shared memory, of which the left one may be in their registers, as
// the sums are.
//
// Facts are from NVIDIA's "Parallel Thread Execution ISA", chapter "Asynchronous Warpgroup Level Matrix Instructions".
#pragma once

#include "common.cuh"
#include <cuda_fp8.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Rows of 128 bytes from an address in shared memory on, as instructions are told of them: groups of eight rows are 1024
// bytes apart, in the swizzle of 128 bytes. If rows are multiplied, a second distance has no meaning with this swizzle; if
// columns are, it is that from 64 of them to the next, which are in another panel.
static __device__ __forceinline__ unsigned long long describe_columns(unsigned int address, unsigned int panel_bytes) {
    return (address & 0x3ffff) >> 4 | static_cast<unsigned long long>(panel_bytes >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

static __device__ __forceinline__ unsigned long long describe_rows(unsigned int address) { return describe_columns(address, 16); }

// The registers with sums are as the threads left them.
static __device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void end_of_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last PENDING batches of products are done.
template <unsigned int PENDING> static __device__ __forceinline__ void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Sums change while their instructions run: what is computed from them must not move to before the wait.
static __device__ __forceinline__ void hold(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
static __device__ __forceinline__ void hold(int& sum) { asm volatile("" : "+r"(sum)::"memory"); }

template <typename Sum, unsigned int COUNT> static __device__ __forceinline__ void hold(Sum (&sums)[COUNT]) {
#pragma unroll
    for (unsigned int i = 0; i < COUNT; ++i) {
        hold(sums[i]);
    }
}

template <unsigned int PENDING, typename Sum, unsigned int COUNT>
static __device__ __forceinline__ void wait_for_products(Sum (&sums)[COUNT]) {
    wait_for_products<PENDING>();
    hold(sums);
}

#define SUMS_32                                                                                                        \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_64                                                                                                        \
    SUMS_32 ", "                                                                                                       \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                 \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_128                                                                                                       \
    SUMS_64 ", "                                                                                                       \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                 \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                                 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                     \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define REGISTERS_8(kind, sums, i)                                                                                     \
    kind(sums[i]), kind(sums[i + 1]), kind(sums[i + 2]), kind(sums[i + 3]), kind(sums[i + 4]), kind(sums[i + 5]),      \
        kind(sums[i + 6]), kind(sums[i + 7])
#define REGISTERS_32(kind, sums, i)                                                                                    \
    REGISTERS_8(kind, sums, i), REGISTERS_8(kind, sums, i + 8), REGISTERS_8(kind, sums, i + 16), REGISTERS_8(kind, sums, i + 24)
#define REGISTERS_64(kind, sums, i) REGISTERS_32(kind, sums, i), REGISTERS_32(kind, sums, i + 32)
#define REGISTERS_128(kind, sums, i) REGISTERS_64(kind, sums, i), REGISTERS_64(kind, sums, i + 64)

// sums ← a·bᵗ, or that added to them, for 64 rows of a, `width` rows of b, and 32 bytes of each. The instruction's operands
// are numbered: the sums, then both matrices, then whether to add.
#define MULTIPLY(T, Sum, kind, width, count, types, left_number, right_number, add_number, options)                    \
    static __device__ __forceinline__ void multiply(                                                                   \
        T, Sum(&sums)[count], unsigned long long left, unsigned long long right, int accumulate) {                     \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_number ", 0;\n"                                       \
                     "wgmma.mma_async.sync.aligned.m64n" width types                                                   \
                     " {" SUMS_##count "}, " left_number ", " right_number ", add" options ";\n}"                      \
                     : REGISTERS_##count(kind, sums, 0)                                                                \
                     : "l"(left), "l"(right), "r"(accumulate)                                                          \
                     : "memory");                                                                                      \
    }
#define MULTIPLY_EVERY_WIDTH(T, Sum, kind, types, options)                                                             \
    MULTIPLY(T, Sum, kind, "64", 32, types, "%32", "%33", "%34", options)                                              \
    MULTIPLY(T, Sum, kind, "128", 64, types, "%64", "%65", "%66", options)                                             \
    MULTIPLY(T, Sum, kind, "256", 128, types, "%128", "%129", "%130", options)

MULTIPLY_EVERY_WIDTH(__half, float, "+f", "k16.f32.f16.f16", ", 1, 1, 0, 0")
MULTIPLY_EVERY_WIDTH(__nv_bfloat16, float, "+f", "k16.f32.bf16.bf16", ", 1, 1, 0, 0")
MULTIPLY_EVERY_WIDTH(__nv_fp8_e4m3, float, "+f", "k32.f32.e4m3.e4m3", ", 1, 1")
MULTIPLY_EVERY_WIDTH(signed char, int, "+r", "k32.s32.s8.s8", "")

// sums ← sums + a·b for 64 rows of a, which are in registers, and columns of b, which lie in its rows.
#define MULTIPLY_COLUMNS(T, width, count, types, left_numbers, right_number)                                           \
    static __device__ __forceinline__ void multiply_columns(                                                           \
        T, float(&sums)[count], const unsigned int* left, unsigned long long right) {                                  \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" width types                                                   \
                     " {" SUMS_##count "}, {" left_numbers "}, " right_number ", 1, 1, 1, 1;"                          \
                     : REGISTERS_##count("+f", sums, 0)                                                                \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right)                              \
                     : "memory");                                                                                      \
    }
#define MULTIPLY_COLUMNS_EVERY_WIDTH(T, types)                                                                         \
    MULTIPLY_COLUMNS(T, "64", 32, types, "%32, %33, %34, %35", "%36")                                                  \
    MULTIPLY_COLUMNS(T, "128", 64, types, "%64, %65, %66, %67", "%68")

MULTIPLY_COLUMNS_EVERY_WIDTH(__half, "k16.f32.f16.f16")
MULTIPLY_COLUMNS_EVERY_WIDTH(__nv_bfloat16, "k16.f32.bf16.bf16")

#endif
