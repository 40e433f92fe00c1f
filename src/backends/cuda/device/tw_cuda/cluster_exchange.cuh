// Reductions of a cluster: along rows every warp leaves its partial in every block, along columns every block
// does, so that one cluster barrier is all.
#pragma once

#include "tw_cuda/cluster.cuh"
#include "tw_cuda/exchange.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

// parts[r][b · warps + w]: of row r and warp w of block b. cluster_sync() must have been passed once before,
// so that all blocks have started, and again before the parts are taken.
template <int kBlocks, class T, int kRows, int kParts>
TW_DEVICE void put_parts_cluster(T (&parts)[kRows][kParts], const T (&x)[kRows]) {
  constexpr int kWarps = kParts / kBlocks;
  const u32 lane = threadIdx.x % 32;
  if (lane < kBlocks) {
    const int part = int(cluster_rank()) * kWarps + int(threadIdx.x / 32) % kWarps;
#pragma unroll
    for (int r = 0; r < kRows; ++r) store_remote(remote_address(shared_address(&parts[r][part]), lane), x[r]);
  }
}
template <int kBlocks, class T, int kParts>
TW_DEVICE void put_parts_cluster(T (&parts)[1][kParts], const T& x) {
  const T one[1] = {x};
  put_parts_cluster<kBlocks>(parts, one);
}

// parts[b][i]: what block b has of column i, of those of a thread in the order in which a warp's threads lie
// side by side. The columns are the same in all kGroups groups of kThreads threads (reduce_groups), each of
// which tells other blocks. Before and after it as above.
template <int kThreads, int kGroups, int kSteps, class T, int kBlocks, int kCols, int N>
TW_DEVICE void put_columns_cluster(T (&parts)[kBlocks][kCols], const Vec<T, N>* x) {
  static_assert(kCols == kThreads * kSteps * N, "a part is a row of the tile");
  const int t = int(threadIdx.x) % kThreads, group = int(threadIdx.x) / kThreads % kGroups;
  const u32 here = shared_address(&parts[cluster_rank()][t]);
#pragma unroll 1
  for (int block = group; block < kBlocks; block += kGroups) {
    const u32 there = remote_address(here, u32(block));
#pragma unroll
    for (int c = 0; c < kSteps; ++c)
#pragma unroll
      for (int v = 0; v < N; ++v) store_remote(there + u32(sizeof(T)) * (c * N + v) * kThreads, x[c].v[v]);
  }
}

// The columns over all blocks, in the order of their ranks: the same bits in every thread that has them. Each
// thread of the block combines some, for all.
template <class Op, int kThreads, int kGroups, int kSteps, class T, int kBlocks, int kCols, int N>
TW_DEVICE void take_columns_cluster(Vec<T, N>* x, T (&parts)[kBlocks][kCols]) {
  combine_columns<Op, kThreads * kGroups>(parts);
  __syncthreads();
  take_columns<kThreads, kSteps>(x, parts[0]);
}

}  // namespace tw

#endif
