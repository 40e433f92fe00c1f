// Products of blocks in shared memory by wgmma: the descriptors that say how a block lies there, and the
// sequence of instructions for one block of k.
#pragma once

#include "tw_cuda/convert.cuh"
#include "tw_cuda/pipeline.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/wgmma.cuh"

namespace tw {

// A matrix descriptor (PTX, "Matrix Descriptor Format"): start, leading and stride offsets in units of 16
// bytes, 128-byte swizzle. Stride: from 8 rows of a panel to the next 8. Leading: from one panel to the next
// (unused for Major::k). Blocks of one place differ in the lower word's start alone, by a constant.
template <class Block>
TW_DEVICE u32 descriptor_word(u32 address) {
  return u32(Block::major == Major::k ? 1 : Block::panel_bytes / 16) << 16 | (address & 0x3ffff) >> 4;
}
TW_DEVICE u64 descriptor(u32 word, int offset) {
  constexpr u32 kShape = u32(1) << 30 | 1024 / 16;
  return u64(kShape) << 32 | (word + u32(offset / 16));
}

// acc (+)= a · b for one block of k: kRowBlocks blocks of 64 rows a warpgroup, kGroups warpgroups below one
// another. `a` and `b` are shared addresses of the blocks; nothing is waited for.
template <class A, class B, int kGroups, class Sum, int kRows, int kCols>
TW_DEVICE void wgmma_block(Vec<Sum, 2> (&acc)[kRows][kCols], u32 a, u32 b, int group, bool add) {
  const u32 first_a = descriptor_word<A>(a + u32(group) * A::offset(64, 0)), first_b = descriptor_word<B>(b);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < A::depth / A::step; ++step) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i)
      wgmma<typename A::type, typename B::type, A::major, B::major>(
          &acc[2 * i], descriptor(first_a, A::offset(i * kGroups * 64, step)),
          descriptor(first_b, B::offset(0, step)), add || step > 0);
  }
  wgmma_commit();
}

// A product of 8-bit operands, whose sums tensor cores keep with about 14 bits: the block's product has an
// accumulator of its own and is added to `acc` when it is done.
template <class A, class B, int kGroups, int kRows, int kCols>
TW_DEVICE void wgmma_two_level(Vec<f32, 2> (&acc)[kRows][kCols], u32 a, u32 b, int group) {
  Vec<f32, 2> part[kRows][kCols];
  wgmma_block<A, B, kGroups>(part, a, b, group, false);
  wgmma_wait<0>();
  wgmma_pin(part);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      acc[r][c].v[0] += part[r][c].v[0];
      acc[r][c].v[1] += part[r][c].v[1];
    }
  }
}

// wgmma_block with a in registers: its columns are the depth of b.
template <class B, class T, int kRows, int kAcross, int kCols>
TW_DEVICE void wgmma_block(Vec<f32, 2> (&acc)[kRows][kCols], const Vec<T, 2> (&a)[kRows][kAcross], u32 b,
                           bool add) {
  static_assert(kAcross * 8 == B::depth, "operands meet");
  const u32 first_b = descriptor_word<B>(b);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < B::depth / 16; ++step) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i)
      wgmma_parts<T, B::major>(&acc[2 * i], &a[2 * i], step, descriptor(first_b, B::offset(0, step)),
                               add || step > 0);
  }
  wgmma_commit();
}

// Operand a of 8 bits in registers, as instructions of 32 columns take it: kBlocks blocks of 64 rows.
template <class T, int kBlocks, int kSteps>
struct ByteOperand {
  u32 words[kBlocks][kSteps][4];
};
template <class T, int kBlocks, int kSteps>
TW_DEVICE void wgmma_pin(ByteOperand<T, kBlocks, kSteps>& a) {
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int part = 0; part < 4; ++part) wgmma_pin(a.words[i][step][part]);
    }
  }
}

// Makes the operand from numbers that lie as a product's accumulator does: rounded, and each four in a row
// brought to one lane.
template <class T, int kBlocks, int kSteps, int kRows, int kAcross>
TW_DEVICE void to_bytes(ByteOperand<T, kBlocks, kSteps>& out, const Vec<f32, 2> (&in)[kRows][kAcross]) {
  static_assert(kRows == 2 * kBlocks && kAcross == 4 * kSteps, "of one size");
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const Vec<f32, 2>* const four = &in[r][4 * step];
      const float even[4] = {four[0].v[0], four[0].v[1], four[2].v[0], four[2].v[1]};
      const float odd[4] = {four[1].v[0], four[1].v[1], four[3].v[0], four[3].v[1]};
      bytes_across_quad(pack_word<T>(even), pack_word<T>(odd), out.words[r / 2][step][r % 2],
                        out.words[r / 2][step][2 + r % 2]);
    }
  }
}

// wgmma_block with such an operand.
template <class B, class T, int kBlocks, int kSteps, int kRows, int kCols>
TW_DEVICE void wgmma_block(Vec<f32, 2> (&acc)[kRows][kCols], const ByteOperand<T, kBlocks, kSteps>& a, u32 b,
                           bool add) {
  static_assert(kSteps * 32 == B::depth && kRows == 2 * kBlocks, "operands meet");
  const u32 first_b = descriptor_word<B>(b);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
      wgmma_bytes<T, typename B::type>(&acc[2 * i], a.words[i][step], descriptor(first_b, B::offset(0, step)),
                                       add || step > 0);
  }
  wgmma_commit();
}

// Which warpgroup this is, as a value that the compiler knows to be the same in all threads of a warp.
TW_DEVICE int warpgroup() { return int(__shfl_sync(kFullWarp, threadIdx.x / 128, 0)); }

}  // namespace tw
