// Row reductions of a cluster: every warp leaves its partial in every block, so that one cluster barrier is
// all.
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

}  // namespace tw

#endif
