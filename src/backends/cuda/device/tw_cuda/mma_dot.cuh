// Products of blocks in shared memory by mma.sync (sm_80): the threads copy blocks there themselves, in the
// panels that TMA would leave (block_layout.cuh), load fragments with ldmatrix, and multiply 16 by 8 by 16.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/block_layout.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

// ---- instructions
TW_DEVICE Vec<u32, 4> load_matrices(u32 address) {
  Vec<u32, 4> m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.v[0]), "=r"(m.v[1]), "=r"(m.v[2]), "=r"(m.v[3])
               : "r"(address)
               : "memory");
  return m;
}
TW_DEVICE Vec<u32, 4> load_matrices_transposed(u32 address) {
  Vec<u32, 4> m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.v[0]), "=r"(m.v[1]), "=r"(m.v[2]), "=r"(m.v[3])
               : "r"(address)
               : "memory");
  return m;
}
// Rows 0 to 7 in `upper`, 8 to 15 in `lower`: as wgmma leaves them, too.
template <class T>
TW_DEVICE void mma(Vec<f32, 2>& upper, Vec<f32, 2>& lower, const Vec<u32, 4>& a, u32 b0, u32 b1) {
  if constexpr (same<T, bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(upper.v[0]), "+f"(upper.v[1]), "+f"(lower.v[0]), "+f"(lower.v[1])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(upper.v[0]), "+f"(upper.v[1]), "+f"(lower.v[0]), "+f"(lower.v[1])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
  }
}

// ---- filling a place
// A block whose first element is `from`: panels along its contiguous axis (x), rows along the other (y). What
// is not below x_end and y_end becomes zeros. kWhole: 16 bytes at a time are aligned and inside or outside as
// a whole; otherwise elements one by one.
template <class Block, int kThreads, bool kWhole, class T>
TW_DEVICE void copy_block(u32 to, const T* from, i64 x_step, i64 y_step, int x_end, int y_end) {
  constexpr int kChunks = Block::bytes / 16, kElements = 16 / int(sizeof(T));
  constexpr int kRows = Block::panel_bytes / 128;
#pragma unroll
  for (int i = 0; i < (kChunks + kThreads - 1) / kThreads; ++i) {
    const int chunk = i * kThreads + int(threadIdx.x);
    if (kChunks % kThreads != 0 && chunk >= kChunks) break;
    // Eight chunks of a row stand side by side, then the rows of a panel, then the panels.
    const int x = (chunk / 8 / kRows * 8 + chunk % 8) * kElements, y = chunk / 8 % kRows;
    const u32 place = to + swizzle(u32(chunk) * 16);
    if constexpr (kWhole) {
      const bool inside = x < x_end && y < y_end;
      copy_async16_to(place, inside ? from + y * y_step + x : from, inside ? 16 : 0);
    } else {
      Vec<T, kElements> some{};
#pragma unroll
      for (int e = 0; e < kElements; ++e)
        if (x + e < x_end && y < y_end) some.v[e] = from[y * y_step + (x + e) * x_step];
      store_shared16(place, bit_cast<Vec<u32, 4>>(some));
    }
  }
}

// ---- multiplying
// acc += a · b for one block of k by warps that stand in rows of kAcross (layout.h, RowMap::mma).
template <class A, class B, int kThreads, int kAcross, int kRows, int kCols>
TW_DEVICE void mma_block(Vec<f32, 2> (&acc)[kRows][kCols], u32 a, u32 b) {
  static_assert(kCols % 2 == 0, "ldmatrix brings two blocks of 8 columns");
  constexpr int kDown = kThreads / 32 / kAcross;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int row = warp / kAcross * 16, column = warp % kAcross * 8;
#pragma unroll
  for (int k = 0; k < A::depth; k += 16) {
    Vec<u32, 4> left[kRows / 2];
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const int r = row + i * kDown * 16;
      if constexpr (A::major == Major::k)
        left[i] = load_matrices(a + A::place(r + lane % 16, k + lane / 16 * 8));
      else
        left[i] = load_matrices_transposed(a + A::place(r + lane / 8 % 2 * 8, k + lane / 16 * 8 + lane % 8));
    }
#pragma unroll
    for (int c = 0; c < kCols; c += 2) {
      const int n = column + (c + lane / 16) * kAcross * 8, half = lane / 8 % 2 * 8;
      Vec<u32, 4> right;
      if constexpr (B::major == Major::k)
        right = load_matrices(b + B::place(n + lane % 8, k + half));
      else
        right = load_matrices_transposed(b + B::place(n, k + half + lane % 8));
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        mma<typename A::type>(acc[2 * i][c], acc[2 * i + 1][c], left[i], right.v[0], right.v[1]);
        mma<typename A::type>(acc[2 * i][c + 1], acc[2 * i + 1][c + 1], left[i], right.v[2], right.v[3]);
      }
    }
  }
}

}  // namespace tw
