// A sum whose parts stand in the registers of a cluster's blocks: each block gets its slice of the columns of
// all of them, in shared memory that held operands, and adds these in the order of the blocks.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/cluster.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

// All kThreads of a block: what was read and written generically is done before the copy engine writes there.
template <int kThreads>
TW_DEVICE void leave_inbox() {
  bulk_store_fence();
  asm volatile("bar.sync %0, %1;" ::"r"(8), "n"(kThreads) : "memory");
}
// The threads that multiply nothing are there when the others meet.
template <int kThreads>
TW_DEVICE void attend_parts() {
  __syncwarp();
  cluster_sync();
  cluster_sync();
  leave_inbox<kThreads>();
}

// `part`: of all columns, over a part of k. kThreads have parts, of kAll in a block. The inbox is as large as
// the tile; no block writes into another's before all have read their operands.
template <int kParts, int kThreads, int kAll, class Sum, int kRows, int kCols, int kWhole>
TW_DEVICE void sum_parts(Vec<Sum, 2> (&sum)[kRows][kCols], const Vec<Sum, 2> (&part)[kRows][kWhole],
                         u32 inbox) {
  static_assert(kWhole == kCols * kParts && kCols % 2 == 0, "slices of whole vectors of four");
  constexpr u32 kChunk = kThreads * 16, kSlice = kRows * kCols / 2 * kChunk;
  const u32 own = inbox + cluster_rank() * kSlice + threadIdx.x * 16;
  cluster_sync();
#pragma unroll
  for (int to = 0; to < kParts; ++to) {
    const u32 there = remote_address(own, u32(to));
#pragma unroll
    for (int i = 0; i < kRows * kCols / 2; ++i) {
      const auto low = bit_cast<Vec<u32, 2>>(part[i / (kCols / 2)][to * kCols + i % (kCols / 2) * 2]);
      const auto high = bit_cast<Vec<u32, 2>>(part[i / (kCols / 2)][to * kCols + i % (kCols / 2) * 2 + 1]);
      store_remote16(there + u32(i) * kChunk, {{low.v[0], low.v[1], high.v[0], high.v[1]}});
    }
  }
  cluster_sync();
  const auto slice = [&](int from, int i) {
    return bit_cast<Vec<Sum, 4>>(
        load_shared16(inbox + u32(from) * kSlice + u32(i) * kChunk + threadIdx.x * 16));
  };
#pragma unroll
  for (int i = 0; i < kRows * kCols / 2; ++i) {
    const auto got = slice(0, i);
#pragma unroll
    for (int j = 0; j < 4; ++j) sum[i / (kCols / 2)][i % (kCols / 2) * 2 + j / 2].v[j % 2] = got.v[j];
  }
#pragma unroll 1  // the registers of one slice at a time
  for (int from = 1; from < kParts; ++from) {
#pragma unroll
    for (int i = 0; i < kRows * kCols / 2; ++i) {
      const auto got = slice(from, i);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i / (kCols / 2)][i % (kCols / 2) * 2 + j / 2].v[j % 2] += got.v[j];
    }
  }
  leave_inbox<kAll>();
}

}  // namespace tw

#endif
