// Products of blocks of f32 in shared memory on the ordinary units: the threads copy blocks there ahead
// (copy_block in mma_dot.cuh), and each multiplies its rows of a by its columns of b in registers.
#pragma once

#include "tw_cuda/mma_dot.cuh"

namespace tw {

// As Block, with another swizzle where k is contiguous: neighbouring threads read rows 1 apart (of a) or 4
// (of b, with vectors of 4 columns), and either way eight of them find their chunks in different banks. Where
// the rows are contiguous, threads beside each other read chunks beside each other: nothing to do.
template <class T, int kRows, int kDepth, Major kMajor>
struct FmaBlock : Block<T, kRows, kDepth, kMajor> {
  using Plain = Block<T, kRows, kDepth, kMajor>;
  // What the chunks of a row trade places by, as bits of the address.
  TW_DEVICE static constexpr u32 swizzle_bits(u32 row) {
    return kMajor == Major::k ? ((row ^ row >> 2) & 7u) << 4 : 0;
  }
  TW_DEVICE static u32 swizzled(u32 offset) { return offset ^ swizzle_bits(offset >> 7); }
};

template <int N>
TW_DEVICE Vec<f32, N> load_shared_vector(u32 address) {
  Vec<f32, N> out;
  if constexpr (N == 1) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(out.v[0]) : "r"(address) : "memory");
  } else if constexpr (N == 2) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(out.v[0]), "=f"(out.v[1])
                 : "r"(address)
                 : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4)
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(out.v[i]), "=f"(out.v[i + 1]), "=f"(out.v[i + 2]), "=f"(out.v[i + 3])
                   : "r"(address + u32(4 * i))
                   : "memory");
  }
  return out;
}

// Where one thread's elements of a block lie: those of row (of a; column of b) `row` + D, at k. D is a
// constant that has no bit in common with any `row`, so that its part of the address is one, too.
template <class Block>
struct Reader {
  u32 base, swizzle_bits;
  TW_DEVICE Reader(u32 block, int row)
      : base(block + u32(Block::major == Major::k ? row * 128
                                                  : row / Block::panel * Block::panel_bytes +
                                                        row % Block::panel * int(sizeof(f32)))),
        swizzle_bits(Block::swizzle_bits(u32(row))) {}
  // k: a multiple of 4 where k is contiguous.
  TW_DEVICE u32 address(int d, int k) const {
    if constexpr (Block::major == Major::k)
      return base + u32(d * 128 + k / Block::panel * Block::panel_bytes) +
             (u32(k % Block::panel * int(sizeof(f32))) ^ swizzle_bits ^ Block::swizzle_bits(u32(d)));
    else
      return base +
             u32(d / Block::panel * Block::panel_bytes + d % Block::panel * int(sizeof(f32)) + k * 128);
  }
  // kStep elements of k from `k` on.
  template <int kStep>
  TW_DEVICE Vec<f32, kStep> along_k(int d, int k) const {
    if constexpr (Block::major == Major::k) return load_shared_vector<kStep>(address(d, k));
    Vec<f32, kStep> out;
#pragma unroll
    for (int i = 0; i < kStep; ++i) out.v[i] = load_shared_vector<1>(address(d, k + i)).v[0];
    return out;
  }
  // N columns at kStep places of k.
  template <int kStep, int N>
  TW_DEVICE void columns(Vec<f32, N> (&to)[kStep], int d, int k) const {
    if constexpr (Block::major == Major::k) {
#pragma unroll
      for (int v = 0; v < N; ++v) {
        const Vec<f32, kStep> along = along_k<kStep>(d + v, k);
#pragma unroll
        for (int i = 0; i < kStep; ++i) to[i].v[v] = along.v[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < kStep; ++i) to[i] = load_shared_vector<N>(address(d, k + i));
    }
  }
};

// acc[r][c] += Σ_k a[row][k] · b[k][column] for one block of k: the thread's kRows rows, kRowStep apart from
// `row`, and its kCols vectors of N columns, kColStep apart from `col`.
template <class A, class B, int kRows, int kRowStep, int kCols, int kColStep, int N>
TW_DEVICE void fma_block(Vec<f32, N>* acc, u32 a, u32 b, int row, int col) {
  static_assert(kRowStep % 8 == 0 && kColStep % 8 == 0, "rows and columns that lie apart share no bits");
  constexpr int kStep = 4;  // of k at once: an access of 16 bytes where k is contiguous
  const Reader<A> rows(a, row);
  const Reader<B> columns(b, col);
// Twice as long, ptxas wants more registers than three blocks of 128 threads leave.
#pragma unroll 1
  for (int k = 0; k < A::depth; k += kStep) {
    Vec<f32, kStep> left[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) left[r] = rows.template along_k<kStep>(r * kRowStep, k);
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      Vec<f32, N> right[kStep];
      columns.template columns<kStep, N>(right, c * kColStep, k);
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int v = 0; v < N; ++v) acc[r * kCols + c].v[v] += left[r].v[i] * right[i].v[v];
        }
      }
    }
  }
}

}  // namespace tw
