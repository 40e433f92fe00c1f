// Products of blocks of f32 in shared memory on the ordinary units: the threads copy blocks there ahead
// (cp.async), and each multiplies its rows of a by its columns of b in registers. Both operands lie by rows
// of one k, whichever way they lie in memory, so that four neighbours come by one access.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/block_layout.cuh"

namespace tw {

// kRows rows of a (columns of b) by kDepth of k, which kThreads threads share: each has `each` of the rows.
// In the tile a thread has kVector neighbouring rows, then the other threads have as many each, and so on. In
// shared memory `width` rows of one thread are neighbours, whatever kVector is: one access brings them.
template <int kRows, int kDepth, int kThreads, int kVector, Major kMajor>
struct FmaBlock {
  static constexpr Major major = kMajor;
  static constexpr int rows = kRows, depth = kDepth, threads = kThreads;
  static constexpr int each = kRows / kThreads;
  static constexpr int width = each % 4 == 0 ? 4 : each % 2 == 0 ? 2 : 1;
  static constexpr bool in_order = width == kVector;
  // Places from one k to the next. The same 4 places of 8 k's lie in 32 different banks, so that a warp whose
  // copies turn a block writes all of them at once.
  static constexpr int pitch = kRows + 4;
  static constexpr int bytes = pitch * kDepth * int(sizeof(f32));
  static_assert((kThreads & (kThreads - 1)) == 0 && kDepth % 8 == 0, "places are sums of bits");

  // The row at a place of shared memory, and the place of a row. Both only move bits: the result for the sum
  // of two numbers that share no bit is the sum of their results.
  TW_DEVICE static constexpr int row_at(int place) {
    const int thread = place / width % kThreads, j = place / (width * kThreads) * width + place % width;
    return (j / kVector * kThreads + thread) * kVector + j % kVector;
  }
  TW_DEVICE static constexpr int place_of(int row) {
    const int thread = row / kVector % kThreads, j = row / (kVector * kThreads) * kVector + row % kVector;
    return (j / width * kThreads + thread) * width + j % width;
  }
};

// Fills a block whose first element is `from`: along its contiguous axis (x) and the other (y), of which one
// is k. What is not below x_end and y_end becomes zeros. kChunks: where rows lie together, 16 bytes at a time
// are aligned, and inside or outside as a whole unless kCut: of the last ones of a row some may be outside.
template <class Block, int kThreads, bool kChunks, bool kCut = false>
TW_DEVICE void copy_fma_block(u32 to, const f32* from, i64 x_step, i64 y_step, int x_end, int y_end) {
  constexpr bool kByDepth = Block::major == Major::k;
  constexpr int kAcross = kByDepth ? Block::depth : Block::rows,
                kDown = kByDepth ? Block::rows : Block::depth;
  const bool all = x_end >= kAcross && y_end >= kDown;  // known when it is compiled
  const int thread = int(threadIdx.x) % kThreads;
  if constexpr (kByDepth) {
    // A warp copies four places of eight k's: 32 banks.
    constexpr int kPlaces = kThreads / 8;
    const int k = thread % 8, place = thread / 8, row = Block::row_at(place);
    const f32* const mine = from + row * y_step + k * x_step;
    const u32 mine_to = to + u32(k * Block::pitch + place) * 4;
#pragma unroll
    for (int i = 0; i < (Block::rows + kPlaces - 1) / kPlaces; ++i) {
      if (Block::rows % kPlaces != 0 && i * kPlaces + place >= Block::rows) break;
      const int down = Block::row_at(i * kPlaces);
#pragma unroll
      for (int along = 0; along < Block::depth; along += 8) {
        const bool inside = all || (k + along < x_end && row + down < y_end);
        copy_async_to<4>(mine_to + u32(along * Block::pitch + i * kPlaces) * 4,
                         mine + down * y_step + along * x_step, inside ? 4 : 0);
      }
    }
  } else if constexpr (kChunks && Block::in_order && Block::width == 4) {
    constexpr int kAlong = Block::rows / 4, kCount = kAlong * Block::depth;
    static_assert(kAlong % kThreads == 0 || kThreads % kAlong == 0, "places are thread + constant");
    constexpr int kDeep = kThreads / kAlong > 0 ? kThreads / kAlong : 1;
    const int x = thread % kAlong * 4, k = kDeep > 1 ? thread / kAlong : 0;
    const f32* const mine = from + k * y_step + x;
    const u32 mine_to = to + u32(k * Block::pitch + x) * 4;
#pragma unroll
    for (int i = 0; i < (kCount + kThreads - 1) / kThreads; ++i) {
      if (kCount % kThreads != 0 && i * kThreads + thread >= kCount) break;
      const int down = i * kThreads / kAlong, across = i * kThreads % kAlong * 4;
      const bool inside = all || (x + across < x_end && k + down < y_end);
      const int most = kCut && !all && x_end - x - across < 4 ? (x_end - x - across) * 4 : 16;
      copy_async16_to(mine_to + u32(down * Block::pitch + across) * 4, mine + down * y_step + across,
                      inside ? most : 0);
    }
  } else {
    // Elements are copied one by one, neighbouring rows by neighbouring threads. A thread's part of an
    // address is computed once, and the rest is a constant.
    constexpr int kCount = Block::rows * Block::depth;
    static_assert(Block::rows % kThreads == 0 || kThreads % Block::rows == 0, "places are thread + constant");
    const int mine_x = thread % Block::rows, mine_y = thread / Block::rows;
    const f32* const mine = from + mine_x * x_step + mine_y * y_step;
    const u32 mine_to = to + u32(mine_y * Block::pitch + Block::place_of(mine_x)) * 4;
#pragma unroll
    for (int i = 0; i < (kCount + kThreads - 1) / kThreads; ++i) {
      if (kCount % kThreads != 0 && i * kThreads + thread >= kCount) break;
      const int across = i * kThreads % Block::rows, down = i * kThreads / Block::rows;
      const bool inside = all || (mine_x + across < x_end && mine_y + down < y_end);
      copy_async_to<4>(mine_to + u32(down * Block::pitch + Block::place_of(across)) * 4,
                       mine + across * x_step + down * y_step, inside ? 4 : 0);
    }
  }
}

template <int N>
TW_DEVICE void load_shared_vector(f32* to, u32 address) {
  if constexpr (N == 1) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(to[0]) : "r"(address) : "memory");
  } else if constexpr (N == 2) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(address) : "memory");
  } else {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(address)
                 : "memory");
  }
}

// What a thread multiplies with at two places of k: one is loaded while the other is used.
template <class A, class B>
struct FmaParts {
  Vec<f32, A::each> a[2];
  Vec<f32, B::each> b[2];
  u32 a_at, b_at;  // where the thread's lie in a block
  TW_DEVICE FmaParts(int row_thread, int column_thread)
      : a_at(u32(row_thread * A::width) * 4), b_at(u32(column_thread * B::width) * 4) {}

  TW_DEVICE void load(int turn, u32 a_block, u32 b_block, int k) {
    load_rows<A>(a[turn].v, a_block + a_at + u32(k * A::pitch) * 4);
    load_rows<B>(b[turn].v, b_block + b_at + u32(k * B::pitch) * 4);
  }
  // acc[r][c] += a[row] · b[column], for kCols vectors of N columns.
  template <int N>
  TW_DEVICE void multiply(int turn, Vec<f32, N>* acc) const {
    constexpr int kCols = B::each / N;
#pragma unroll
    for (int r = 0; r < A::each; ++r) {
#pragma unroll
      for (int c = 0; c < kCols; ++c) {
#pragma unroll
        for (int v = 0; v < N; ++v) acc[r * kCols + c].v[v] += a[turn].v[r] * b[turn].v[c * N + v];
      }
    }
  }

 private:
  template <class Block>
  TW_DEVICE static void load_rows(f32* to, u32 from) {
#pragma unroll
    for (int j = 0; j < Block::each; j += Block::width)
      load_shared_vector<Block::width>(to + j, from + u32(j * Block::threads) * 4);
  }
};

// acc += a · b for one block of k, whose first parts are loaded; loads the first ones of the next block,
// which is there when at most kPending copies are under way.
template <int kPending, class A, class B, int N>
TW_DEVICE void fma_block(FmaParts<A, B>& parts, Vec<f32, N>* acc, u32 a, u32 b, u32 next_a, u32 next_b) {
#pragma unroll 4
  for (int k = 0; k < A::depth; k += 2) {
    parts.load(1, a, b, k + 1);
    parts.multiply(0, acc);
    if (k + 2 < A::depth) {
      parts.load(0, a, b, k + 2);
    } else {
      copy_async_wait<kPending>();
      __syncthreads();
      parts.load(0, next_a, next_b, 0);
    }
    parts.multiply(1, acc);
  }
}

}  // namespace tw
