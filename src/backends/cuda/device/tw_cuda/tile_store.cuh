// Results that leave a warpgroup by way of shared memory: pieces of 64 rows of 128 bytes, swizzled as
// operands are (block_layout.cuh), which the copy engine stores while the warpgroup goes on. Thread t of it
// has rows 16 (t / 32) + t % 32 / 4 + 8 half of a piece, and of every 8 columns two (wgmma.cuh).
#pragma once

#include "tw_cuda/pipeline.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

inline constexpr u32 kPieceBytes = 64 * 128;

// One warpgroup's stages; kStages of them, at least two.
template <int kStages>
struct TmaStoreStages {
  u32 stages;  // shared address of the first
  u32 stage;
  TW_DEVICE u32 piece() const { return stages + stage * kPieceBytes; }
};

// Four blocks of 8 columns, `block` the first of them in the piece. Of 16 bits lanes 8 j … 8 j + 7 name the
// rows of block j, and each lane gives what it has of all four; of 32 bits two lanes share a chunk of 16
// bytes, and a block has two chunks.
template <class T>
TW_DEVICE void put(u32 piece, int half, int block, const Vec<T, 2> (&parts)[4]) {
  const u32 lane = threadIdx.x % 32, first_row = threadIdx.x % 128 / 32 * 16 + u32(half) * 8;
  if constexpr (sizeof(T) == 2) {
    const u32 at = piece + (first_row + lane % 8) * 128 + (((u32(block) + lane / 8) ^ lane % 8) << 4);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(bit_cast<u32>(parts[0])), "r"(bit_cast<u32>(parts[1])), "r"(bit_cast<u32>(parts[2])),
                 "r"(bit_cast<u32>(parts[3]))
                 : "memory");
  } else {
    const u32 at = piece + (first_row + lane / 4) * 128 + lane % 2 * 8;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 chunk = 2 * (u32(block) + i) + lane % 4 / 2;
      store_shared8(at + ((chunk ^ lane / 4) << 4), bit_cast<Vec<u32, 2>>(parts[i]));
    }
  }
}

// One panel of 64 rows from shared memory to the tensor; what lies outside of it is not written.
TW_DEVICE void tma_store(u32 from, const TensorMap& map, i32 x, i32 y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(from), "r"(x), "r"(y)
               : "memory");
}
TW_DEVICE void tma_store(u32 from, const TensorMap& map, i32 x, i32 y, i32 z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
      "r"(from), "r"(x), "r"(y), "r"(z)
      : "memory");
}
TW_DEVICE void tma_store(u32 from, const TensorMap& map, i32 x, i32 y, i32 z, i32 w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
      "r"(from), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The piece is written: off it goes. Afterwards the next stage is free: the one thread that stores has seen
// that the copy engine has read it, before the barrier at which all of them wait.
template <int kStages, class... Index>
TW_DEVICE void send(TmaStoreStages<kStages>& out, const TensorMap& map, int group, i32 x, Index... outer) {
  static_assert(kStages >= 2, "one is written while another is read");
  bulk_store_fence();
  if (threadIdx.x % 128 == 0) bulk_wait_read<kStages - 2>();
  warpgroup_sync(group);
  if (threadIdx.x % 128 == 0) {
    tma_store(out.piece(), map, x, outer...);
    bulk_commit();
  }
  out.stage = out.stage + 1 == kStages ? 0 : out.stage + 1;
}
// At the end: a block's shared memory must outlive what is read from it.
TW_DEVICE void close_store_stages() {
  if (threadIdx.x % 128 == 0) bulk_wait_read<0>();
}

}  // namespace tw

#endif
