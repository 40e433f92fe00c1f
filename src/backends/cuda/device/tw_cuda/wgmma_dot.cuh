// Products of blocks in shared memory by wgmma: how a block lies there, the descriptors that say so to the
// tensor cores, and the sequence of instructions for one block of k.
#pragma once

#include "tw_cuda/ring.cuh"
#include "tw_cuda/wgmma.cuh"

namespace tw {

// An operand's block: kRows rows of a (or columns of b) by kDepth of k, in panels of 128-byte rows as TMA
// leaves them. Major::k: kDepth / 64 panels of kRows rows of k; Major::mn: kRows / 64 panels of kDepth rows.
template <class T, int kRows, int kDepth, Major kMajor>
struct Block {
  using type = T;
  static constexpr Major major = kMajor;
  static constexpr int depth = kDepth;
  static constexpr int bytes = kRows * kDepth * int(sizeof(T));
  static constexpr int panel_bytes = 128 * (kMajor == Major::k ? kRows : kDepth);

  // Bytes from the block's start to row `row` and step `step` of 16 along k. Both are multiples of what a
  // descriptor can begin at: 8 rows of a panel, or 32 bytes inside its first row.
  TW_DEVICE static constexpr int offset(int row, int step) {
    return kMajor == Major::k ? row * 128 + step / 4 * panel_bytes + step % 4 * 32
                              : row / 64 * panel_bytes + step * 16 * 128;
  }
  // PTX, "Matrix Descriptor Format": start, leading and stride offsets in units of 16 bytes, 128-byte swizzle.
  // Stride: from 8 rows of a panel to the next 8. Leading: from one panel to the next (unused for Major::k).
  static constexpr u64 shape = u64(1) << 62 | u64(1024 / 16) << 32 |
                               u64(kMajor == Major::k ? 1 : panel_bytes / 16) << 16;
  TW_DEVICE static u64 descriptor(u32 address) { return shape | (address & 0x3ffff) >> 4; }
};

// acc (+)= a · b for one block of k: kRowBlocks blocks of 64 rows a warpgroup, kGroups warpgroups below one
// another. `a` and `b` are shared addresses of the blocks; nothing is waited for.
template <class A, class B, int kGroups, int kRows, int kCols>
TW_DEVICE void wgmma_block(Vec<f32, 2> (&acc)[kRows][kCols], u32 a, u32 b, int group, bool add) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < A::depth / 16; ++step) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i)
      wgmma<typename A::type, A::major, B::major>(
          &acc[2 * i],
          A::descriptor(a + u32(group) * A::offset(64, 0) + A::offset(i * kGroups * 64, step)),
          B::descriptor(b + B::offset(0, step)), add || step > 0);
  }
  wgmma_commit();
}

// Which warpgroup this is, as a value that the compiler knows to be the same in all threads of a warp.
TW_DEVICE int warpgroup() { return int(__shfl_sync(kFullWarp, threadIdx.x / 128, 0)); }

// Dynamic shared memory from the first multiple of 1024 bytes on, which swizzled blocks begin at.
TW_DEVICE u32 block_stage() { return (smem_address(stage<char>()) + 1023) & ~1023u; }

}  // namespace tw
