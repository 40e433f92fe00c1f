// wgmma (sm_90a): a warpgroup of 128 threads multiplies blocks of shared memory on the tensor cores while its
// threads go on. The accumulator of a product of 64 rows lies in Vec<f32, 2> acc[2][columns / 8], of 8-bit
// integers in Vec<i32, 2>: thread t
// holds rows 16 (t / 32) + t % 32 / 4 + 8 r and columns 8 c + 2 (t % 4) + v (layout.h, RowMap::mma).
#pragma once

#include "tw_cuda/block_layout.cuh"

namespace tw {

// ---- order. The accumulators are named wherever the tensor cores take them over or give them back, so that
// the compiler moves no use of them across.
template <int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<f32, 2> (&acc)[kRows][kCols]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kCols; ++c) asm volatile("" : "+f"(acc[r][c].v[0]), "+f"(acc[r][c].v[1])::"memory");
  }
}
template <int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<i32, 2> (&acc)[kRows][kCols]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kCols; ++c) asm volatile("" : "+r"(acc[r][c].v[0]), "+r"(acc[r][c].v[1])::"memory");
  }
}
// The same for an operand in registers.
template <class T, int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<T, 2> (&a)[kRows][kCols]) {
  static_assert(sizeof(T) == 2, "operands are 16 bits wide");
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      u32 word = bit_cast<u32>(a[r][c]);
      asm volatile("" : "+r"(word)::"memory");
      a[r][c] = bit_cast<Vec<T, 2>>(word);
    }
  }
}
// What was loaded while products were under way: nobody waits for it before here.
TW_DEVICE void wgmma_pin(f32& x) { asm volatile("" : "+f"(x)::"memory"); }
TW_DEVICE void wgmma_pin(u32& x) { asm volatile("" : "+r"(x)::"memory"); }
template <int kRows>
TW_DEVICE void wgmma_pin(f32 (&x)[kRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) wgmma_pin(x[r]);
}
TW_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most kPending committed groups are under way.
template <int kPending>
TW_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// ---- registers: moved between warpgroups whose roles need different numbers of them
template <int kRegisters>
TW_DEVICE void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
TW_DEVICE void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- the instruction. acc = a · b (+ acc where `add`), 64 rows, 8 kCols columns, 32 bytes deep; a and b are
// matrix descriptors (wgmma_dot.cuh).
namespace detail {

// Four registers of the sum for a column c of pairs; `f` or `r`, as floats or integers.
#define TW_PAIR(in, c) in(acc[0][c].v[0]), in(acc[0][c].v[1]), in(acc[1][c].v[0]), in(acc[1][c].v[1])
#define TW_PAIRS4(in, c) TW_PAIR(in, c), TW_PAIR(in, c + 1), TW_PAIR(in, c + 2), TW_PAIR(in, c + 3)
#define TW_PAIRS8(in, c) TW_PAIRS4(in, c), TW_PAIRS4(in, c + 4)
#define TW_PAIRS16(in, c) TW_PAIRS8(in, c), TW_PAIRS8(in, c + 8)
#define TW_REGISTERS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TW_REGISTERS_16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TW_REGISTERS_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_REGISTERS_48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TW_REGISTERS_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TW_REGISTERS_80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TW_REGISTERS_96 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define TW_REGISTERS_112 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// Operands of 16 bits lie either way round, which the instruction must be told.
#define TW_EITHER_MAJOR(a, b) ", 1, 1, " a ", " b
#define TW_ALWAYS_BY_K(a, b) ", 1, 1"
#define TW_INTEGERS(a, b) ""

// columns; depth and types of the instruction, the sum's first; what follows `p`; how the sum's registers are
// held; their names, then those of a, b, add and the two majors.
#define TW_WGMMA(columns, depth, types, options, registers, a_name, b_name, add_name, major_a, major_b, ...) \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add_name                                                    \
               ", 0; wgmma.mma_async.sync.aligned.m64n" columns depth "." types " {" registers "}, " a_name  \
               ", " b_name ", p" options(major_a, major_b) "; }"                                             \
               : __VA_ARGS__                                                                                 \
               : "l"(a), "l"(b), "r"(int(add)), "n"(int(kA)), "n"(int(kB)))

#define TW_WGMMA_OF(depth, types, options, in)                                                             \
  if constexpr (kCols == 4)                                                                                \
    TW_WGMMA("32", depth, types, options, TW_REGISTERS_0, "%16", "%17", "%18", "%19", "%20",               \
             TW_PAIRS4(in, 0));                                                                            \
  else if constexpr (kCols == 8)                                                                           \
    TW_WGMMA("64", depth, types, options, TW_REGISTERS_0 ", " TW_REGISTERS_16, "%32", "%33", "%34", "%35", \
             "%36", TW_PAIRS8(in, 0));                                                                     \
  else if constexpr (kCols == 12)                                                                          \
    TW_WGMMA("96", depth, types, options, TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32, "%48", \
             "%49", "%50", "%51", "%52", TW_PAIRS8(in, 0), TW_PAIRS4(in, 8));                              \
  else if constexpr (kCols == 16)                                                                          \
    TW_WGMMA("128", depth, types, options,                                                                 \
             TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48, "%64", "%65",  \
             "%66", "%67", "%68", TW_PAIRS16(in, 0));                                                      \
  else if constexpr (kCols == 20)                                                                          \
    TW_WGMMA("160", depth, types, options,                                                                 \
             TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48                 \
                            ", " TW_REGISTERS_64,                                                          \
             "%80", "%81", "%82", "%83", "%84", TW_PAIRS16(in, 0), TW_PAIRS4(in, 16));                     \
  else if constexpr (kCols == 24)                                                                          \
    TW_WGMMA("192", depth, types, options,                                                                 \
             TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48                 \
                            ", " TW_REGISTERS_64 ", " TW_REGISTERS_80,                                     \
             "%96", "%97", "%98", "%99", "%100", TW_PAIRS16(in, 0), TW_PAIRS8(in, 16));                    \
  else if constexpr (kCols == 28)                                                                          \
    TW_WGMMA("224", depth, types, options,                                                                 \
             TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48                 \
                            ", " TW_REGISTERS_64 ", " TW_REGISTERS_80 ", " TW_REGISTERS_96,                \
             "%112", "%113", "%114", "%115", "%116", TW_PAIRS16(in, 0), TW_PAIRS8(in, 16),                 \
             TW_PAIRS4(in, 24));                                                                           \
  else if constexpr (kCols == 32)                                                                          \
    TW_WGMMA("256", depth, types, options,                                                                 \
             TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48                 \
                            ", " TW_REGISTERS_64 ", " TW_REGISTERS_80 ", " TW_REGISTERS_96                 \
                            ", " TW_REGISTERS_112,                                                         \
             "%128", "%129", "%130", "%131", "%132", TW_PAIRS16(in, 0), TW_PAIRS16(in, 16));               \
  else                                                                                                     \
    static_assert(kCols < 0, "wgmma of 32, 64, 96, 128, 160, 192, 224 or 256 columns")

// The same with 32 bytes of a's columns in the threads' registers.
#define TW_B_EITHER_MAJOR(b) ", 1, 1, " b
#define TW_B_BY_K(b) ", 1, 1"
#define TW_WGMMA_PARTS(columns, types, options, registers, a0, a1, a2, a3, b_name, add_name, major_b, ...) \
  asm volatile(                                                                                            \
      "{ .reg .pred p; setp.ne.b32 p, " add_name ", 0; wgmma.mma_async.sync.aligned.m64n" columns types    \
      " {" registers "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b_name ", p" options(major_b) "; }"           \
      : __VA_ARGS__                                                                                        \
      : "r"(parts[0]), "r"(parts[1]), "r"(parts[2]), "r"(parts[3]), "l"(b), "r"(int(add)), "n"(int(kB)))

#define TW_WGMMA_PARTS_OF(types, options)                                                                   \
  if constexpr (kCols == 4)                                                                                 \
    TW_WGMMA_PARTS("32", types, options, TW_REGISTERS_0, "%16", "%17", "%18", "%19", "%20", "%21", "%22",   \
                   TW_PAIRS4("+f", 0));                                                                     \
  else if constexpr (kCols == 8)                                                                            \
    TW_WGMMA_PARTS("64", types, options, TW_REGISTERS_0 ", " TW_REGISTERS_16, "%32", "%33", "%34", "%35",   \
                   "%36", "%37", "%38", TW_PAIRS8("+f", 0));                                                \
  else if constexpr (kCols == 12)                                                                           \
    TW_WGMMA_PARTS("96", types, options, TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32, "%48",   \
                   "%49", "%50", "%51", "%52", "%53", "%54", TW_PAIRS8("+f", 0), TW_PAIRS4("+f", 8));       \
  else if constexpr (kCols == 16)                                                                           \
    TW_WGMMA_PARTS("128", types, options,                                                                   \
                   TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48, "%64",    \
                   "%65", "%66", "%67", "%68", "%69", "%70", TW_PAIRS16("+f", 0));                          \
  else if constexpr (kCols == 20)                                                                           \
    TW_WGMMA_PARTS(                                                                                         \
        "160", types, options,                                                                              \
        TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64, \
        "%80", "%81", "%82", "%83", "%84", "%85", "%86", TW_PAIRS16("+f", 0), TW_PAIRS4("+f", 16));         \
  else if constexpr (kCols == 24)                                                                           \
    TW_WGMMA_PARTS("192", types, options,                                                                   \
                   TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48            \
                                  ", " TW_REGISTERS_64 ", " TW_REGISTERS_80,                                \
                   "%96", "%97", "%98", "%99", "%100", "%101", "%102", TW_PAIRS16("+f", 0),                 \
                   TW_PAIRS8("+f", 16));                                                                    \
  else if constexpr (kCols == 28)                                                                           \
    TW_WGMMA_PARTS("224", types, options,                                                                   \
                   TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48            \
                                  ", " TW_REGISTERS_64 ", " TW_REGISTERS_80 ", " TW_REGISTERS_96,           \
                   "%112", "%113", "%114", "%115", "%116", "%117", "%118", TW_PAIRS16("+f", 0),             \
                   TW_PAIRS8("+f", 16), TW_PAIRS4("+f", 24));                                               \
  else if constexpr (kCols == 32)                                                                           \
    TW_WGMMA_PARTS(                                                                                         \
        "256", types, options,                                                                              \
        TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64  \
                       ", " TW_REGISTERS_80 ", " TW_REGISTERS_96 ", " TW_REGISTERS_112,                     \
        "%128", "%129", "%130", "%131", "%132", "%133", "%134", TW_PAIRS16("+f", 0), TW_PAIRS16("+f", 16)); \
  else                                                                                                      \
    static_assert(kCols < 0, "wgmma of 32, 64, 96, 128, 160, 192, 224 or 256 columns")

}  // namespace detail

// Operands of type A and B; a sum of f32, or of i32 for 8-bit integers.
template <class A, class B, Major kA, Major kB, class Sum, int kCols>
TW_DEVICE void wgmma(Vec<Sum, 2> (*acc)[kCols], u64 a, u64 b, bool add) {
  if constexpr (same<A, bf16>) {
    static_assert(same<B, bf16>, "wgmma of one 16-bit type");
    TW_WGMMA_OF("k16", "f32.bf16.bf16", TW_EITHER_MAJOR, "+f");
  } else if constexpr (same<A, f16>) {
    static_assert(same<B, f16>, "wgmma of one 16-bit type");
    TW_WGMMA_OF("k16", "f32.f16.f16", TW_EITHER_MAJOR, "+f");
  } else if constexpr (same<A, i8>) {
    static_assert(same<B, i8> && same<Sum, i32>, "wgmma of 8-bit integers");
    TW_WGMMA_OF("k32", "s32.s8.s8", TW_INTEGERS, "+r");
  } else if constexpr (same<A, f8e4m3> && same<B, f8e4m3>) {
    TW_WGMMA_OF("k32", "f32.e4m3.e4m3", TW_ALWAYS_BY_K, "+f");
  } else if constexpr (same<A, f8e4m3> && same<B, f8e5m2>) {
    TW_WGMMA_OF("k32", "f32.e4m3.e5m2", TW_ALWAYS_BY_K, "+f");
  } else if constexpr (same<A, f8e5m2> && same<B, f8e4m3>) {
    TW_WGMMA_OF("k32", "f32.e5m2.e4m3", TW_ALWAYS_BY_K, "+f");
  } else if constexpr (same<A, f32>) {
    static_assert(same<B, f32>, "wgmma of f32 as tf32");
    TW_WGMMA_OF("k8", "f32.tf32.tf32", TW_ALWAYS_BY_K, "+f");
  } else {
    static_assert(same<A, f8e5m2> && same<B, f8e5m2>,
                  "wgmma of bf16, f16, f32 as tf32, i8, f8e4m3 or f8e5m2");
    TW_WGMMA_OF("k32", "f32.e5m2.e5m2", TW_ALWAYS_BY_K, "+f");
  }
}

// a of 16 bits: rows t / 4 and t / 4 + 8 of a warp's 16, columns 16 step + 2 (t % 4) + {0, 1} and 8 further.
template <class T, Major kB, int kAcross, int kCols>
TW_DEVICE void wgmma_parts(Vec<f32, 2> (*acc)[kCols], const Vec<T, 2> (*a)[kAcross], int step, u64 b,
                           bool add) {
  const u32 parts[4] = {bit_cast<u32>(a[0][2 * step]), bit_cast<u32>(a[1][2 * step]),
                        bit_cast<u32>(a[0][2 * step + 1]), bit_cast<u32>(a[1][2 * step + 1])};
  if constexpr (same<T, bf16>) {
    TW_WGMMA_PARTS_OF("k16.f32.bf16.bf16", TW_B_EITHER_MAJOR);
  } else {
    TW_WGMMA_PARTS_OF("k16.f32.f16.f16", TW_B_EITHER_MAJOR);
  }
}
// a of 8 bits: `parts` are the same rows, columns 4 (t % 4) + {0 … 3}, and both 16 further.
template <class A, class B, int kCols>
TW_DEVICE void wgmma_bytes(Vec<f32, 2> (*acc)[kCols], const u32 (&parts)[4], u64 b, bool add) {
  constexpr int kB = 0;
  if constexpr (same<A, f8e4m3> && same<B, f8e4m3>) {
    TW_WGMMA_PARTS_OF("k32.f32.e4m3.e4m3", TW_B_BY_K);
  } else if constexpr (same<A, f8e4m3>) {
    TW_WGMMA_PARTS_OF("k32.f32.e4m3.e5m2", TW_B_BY_K);
  } else if constexpr (same<B, f8e4m3>) {
    TW_WGMMA_PARTS_OF("k32.f32.e5m2.e4m3", TW_B_BY_K);
  } else {
    static_assert(same<A, f8e5m2> && same<B, f8e5m2>, "wgmma_bytes of 8-bit floats");
    TW_WGMMA_PARTS_OF("k32.f32.e5m2.e5m2", TW_B_BY_K);
  }
}

#undef TW_PAIR
#undef TW_PAIRS4
#undef TW_PAIRS8
#undef TW_PAIRS16
#undef TW_REGISTERS_0
#undef TW_REGISTERS_16
#undef TW_REGISTERS_32
#undef TW_REGISTERS_48
#undef TW_REGISTERS_64
#undef TW_REGISTERS_80
#undef TW_REGISTERS_96
#undef TW_REGISTERS_112
#undef TW_EITHER_MAJOR
#undef TW_ALWAYS_BY_K
#undef TW_INTEGERS
#undef TW_B_EITHER_MAJOR
#undef TW_B_BY_K
#undef TW_WGMMA
#undef TW_WGMMA_OF
#undef TW_WGMMA_PARTS
#undef TW_WGMMA_PARTS_OF

}  // namespace tw
