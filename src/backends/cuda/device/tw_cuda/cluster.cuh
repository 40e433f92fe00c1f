// Clusters (sm_90): blocks that run together and reach each other's shared memory.
#pragma once

#include "tw_cuda/block.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

TW_DEVICE u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
TW_DEVICE u32 cluster_size() {
  u32 size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// A barrier of all threads of the cluster. What was written before it, in any block's shared memory, can be
// read after it.
TW_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
TW_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TW_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

TW_DEVICE u32 shared_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
// The address, in the cluster's shared window, of what `local` names in this block, but in block `rank`.
TW_DEVICE u32 remote_address(u32 local, u32 rank) {
  u32 out;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(local), "r"(rank));
  return out;
}
template <class T>
TW_DEVICE void store_remote(u32 address, const T& value) {
  static_assert(sizeof(T) % 4 == 0, "remote stores go word by word");
  const auto words = bit_cast<Vec<u32, int(sizeof(T) / 4)>>(value);
#pragma unroll
  for (int i = 0; i < int(sizeof(T) / 4); ++i) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address + 4 * i), "r"(words.v[i]) : "memory");
  }
}
TW_DEVICE u32 load_remote(u32 address) {
  u32 out;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(out) : "r"(address) : "memory");
  return out;
}

// One partial of each block of the largest cluster, twice, as in BlockScratch.
template <class T>
struct ClusterScratch {
  BlockScratch<T> block;
  T partial[2][16];
};

// Every thread of every block gets the result over the whole cluster of kBlocks blocks of kThreads threads.
// `scratch` is shared memory; `step` as for block_reduce. Before the first use each block must pass
// cluster_sync(), so that all of them have started; no further barrier is needed before the kernel ends.
template <class Op, int kThreads, int kBlocks, class T>
TW_DEVICE T cluster_reduce(T value, ClusterScratch<T>& scratch, int step) {
  value = block_reduce<Op, kThreads>(value, scratch.block, step);
  if constexpr (kBlocks > 1) {
    T* partial = scratch.partial[step & 1];
    const u32 target = threadIdx.x;
    if (target < kBlocks)
      store_remote(remote_address(shared_address(partial + cluster_rank()), target), value);
    cluster_sync();
    value = partial[0];
#pragma unroll
    for (int i = 1; i < kBlocks; ++i) value = Op::template combine<T>(value, partial[i]);
  }
  return value;
}

}  // namespace tw

#endif
