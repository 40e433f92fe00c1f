// Blocks of strided tensors between global and shared memory by the copy engine (sm_90, TMA): the host
// describes a view and the shape of a panel once (tensor_map.h), a thread names a panel by its coordinates.
// A panel is rows of 128 bytes, 16-byte chunk c of row r at place c ^ (r % 8): free of bank conflicts, and
// the way wgmma reads it. What lies outside of the tensor arrives as zeros and counts as bytes all the same.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/cluster.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

struct alignas(64) TensorMap {  // CUtensorMap
  u64 opaque[16];
};

TW_DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// One panel; coordinates from the contiguous dimension outwards. The last of the `barrier`'s bytes ends its
// phase.
TW_DEVICE void tma_load(u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "r"(x), "r"(y)
      : "memory");
}
TW_DEVICE void tma_load(u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y, i32 z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
TW_DEVICE void tma_load(u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y, i32 z, i32 w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
// The same panel to the same place of every block of the cluster that `blocks` has a bit for; each counts it
// on its own barrier at the same place.
TW_DEVICE void tma_multicast(u16 blocks, u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "h"(blocks), "r"(x), "r"(y)
      : "memory");
}
TW_DEVICE void tma_multicast(u16 blocks, u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y,
                             i32 z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "h"(blocks), "r"(x), "r"(y), "r"(z)
      : "memory");
}
TW_DEVICE void tma_multicast(u16 blocks, u32 to, const TensorMap& map, Barrier& barrier, i32 x, i32 y, i32 z,
                             i32 w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(smem_address(&barrier)), "h"(blocks), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// kPanels panels side by side along the contiguous dimension, kBytes each.
template <int kPanels, int kBytes, int kElements, class... Index>
TW_DEVICE void tma_load_panels(u32 to, const TensorMap& map, Barrier& barrier, i32 x, Index... outer) {
#pragma unroll
  for (int p = 0; p < kPanels; ++p) tma_load(to + p * kBytes, map, barrier, x + p * kElements, outer...);
}
template <int kPanels, int kBytes, int kElements, class... Index>
TW_DEVICE void tma_multicast_panels(u16 blocks, u32 to, const TensorMap& map, Barrier& barrier, i32 x,
                                    Index... outer) {
#pragma unroll
  for (int p = 0; p < kPanels; ++p)
    tma_multicast(blocks, to + p * kBytes, map, barrier, x + p * kElements, outer...);
}

}  // namespace tw

#endif
