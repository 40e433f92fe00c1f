// How an operand's block lies in shared memory for tensor cores.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/exchange.cuh"

namespace tw {

// Which of an operand's dimensions is contiguous in memory: k, or the rows of a (columns of b).
enum class Major { k = 0, mn = 1 };

// 16-byte chunk c of a 128-byte row r stands at place c ^ (r % 8), as bits of the address: what 8 rows hold
// of a chunk lies in different banks.
TW_DEVICE u32 swizzle(u32 offset) { return offset ^ (offset >> 7 & 7u) << 4; }

// kRows rows of a (or columns of b) by kDepth of k, in panels of 128-byte rows, swizzled. Major::k: kDepth /
// 64 panels of kRows rows of k; Major::mn: kRows / 64 panels of kDepth rows. Of 8-bit types a panel's rows
// are twice as long in elements, and tensor cores read them by k only; of 32-bit types half as long, and only
// mma.sync reads them both ways.
template <class T, int kRows, int kDepth, Major kMajor>
struct Block {
  using type = T;
  static constexpr Major major = kMajor;
  static constexpr int rows = kRows;
  static constexpr int depth = kDepth;
  static_assert(sizeof(T) > 1 || kMajor == Major::k, "8-bit operands lie by k");
  static constexpr int panel = 128 / int(sizeof(T));  // elements of a panel's row
  static constexpr int step = 32 / int(sizeof(T));    // of k, in one instruction
  static constexpr int bytes = kRows * kDepth * int(sizeof(T));
  static constexpr int panel_bytes = 128 * (kMajor == Major::k ? kRows : kDepth);

  // What the chunks of a row trade places by, as bits of the address; and where the bytes from `offset` on
  // lie.
  TW_DEVICE static constexpr u32 swizzle_bits(u32 row) { return (row & 7u) << 4; }
  TW_DEVICE static u32 swizzled(u32 offset) { return swizzle(offset); }
  // Bytes from the block's start to element (row, k).
  TW_DEVICE static u32 place(int row, int k) {
    const int x = kMajor == Major::k ? k : row, y = kMajor == Major::k ? row : k;
    constexpr bool kOnePanel = (kMajor == Major::k ? kDepth : kRows) == panel;
    const u32 before = kOnePanel ? 0u : u32(x / panel * panel_bytes);
    const u32 along = u32(kOnePanel ? x : x % panel) * u32(sizeof(T));
    // Apart, what trades places and what does not: constants of either are a load's own offset.
    return before + u32(y * 128) + (swizzle_bits(u32(y)) ^ (along & ~15u)) + (along & 15u);
  }
  // Bytes to row `row` and instruction `i` along k, before swizzling. Both are multiples of what a wgmma
  // descriptor can begin at: 8 rows of a panel, or 32 bytes inside its first row.
  TW_DEVICE static constexpr int offset(int row, int i) {
    return kMajor == Major::k ? row * 128 + i / 4 * panel_bytes + i % 4 * 32
                              : row / panel * panel_bytes + i * step * 128;
  }
};

// Dynamic shared memory from the first multiple of 1024 bytes on, which swizzled blocks begin at.
TW_DEVICE u32 block_stage() { return (smem_address(shared_memory<char>()) + 1023) & ~1023u; }

// Two neighbours along k of a block of bytes, in one access: as bytes, the compiler would load each by
// itself.
template <class Block>
TW_DEVICE Vec<typename Block::type, 2> block_pair(u32 block, int row, int k) {
  static_assert(sizeof(typename Block::type) == 1 && Block::major == Major::k,
                "block_pair: bytes that lie by k");
  u32 pair;
  asm volatile("ld.shared.u16 %0, [%1];" : "=r"(pair) : "r"(block + Block::place(row, k)) : "memory");
  return bit_cast<Vec<typename Block::type, 2>>(u16(pair));
}

}  // namespace tw
