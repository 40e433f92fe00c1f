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
// Waits until at most kPending committed groups are under way.
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
// matrix descriptors (wgmma_dot.cuh). A kernel includes the numbers of columns that its products have
// (wgmma_n192.cuh, …): all of them, in every type, would take most of a kernel's time in the front end.
namespace detail {
template <int kCols>
struct Wgmma;
}  // namespace detail

// Operands of type A and B; a sum of f32, or of i32 for 8-bit integers.
template <class A, class B, Major kA, Major kB, class Sum, int kCols>
TW_DEVICE void wgmma(Vec<Sum, 2> (*acc)[kCols], u64 a, u64 b, bool add) {
  detail::Wgmma<kCols>::template multiply<A, B, int(kA), int(kB)>(acc, a, b, add);
}

// a of 16 bits: rows t / 4 and t / 4 + 8 of a warp's 16, columns 16 step + 2 (t % 4) + {0, 1} and 8 further.
template <class T, Major kB, int kAcross, int kCols>
TW_DEVICE void wgmma_parts(Vec<f32, 2> (*acc)[kCols], const Vec<T, 2> (*a)[kAcross], int step, u64 b,
                           bool add) {
  const u32 parts[4] = {bit_cast<u32>(a[0][2 * step]), bit_cast<u32>(a[1][2 * step]),
                        bit_cast<u32>(a[0][2 * step + 1]), bit_cast<u32>(a[1][2 * step + 1])};
  detail::Wgmma<kCols>::template multiply_parts<T, T, int(kB)>(acc, parts, b, add);
}
// a of 8 bits: `parts` are the same rows, columns 4 (t % 4) + {0 … 3}, and both 16 further.
template <class A, class B, int kCols>
TW_DEVICE void wgmma_bytes(Vec<f32, 2> (*acc)[kCols], const u32 (&parts)[4], u64 b, bool add) {
  detail::Wgmma<kCols>::template multiply_parts<A, B, 0>(acc, parts, b, add);
}

}  // namespace tw
