// Products of blocks in shared memory by mma.sync (sm_80): the threads copy blocks there themselves, in the
// panels that TMA would leave (block_layout.cuh), load fragments with ldmatrix, and multiply 16 by 8 by 32
// bytes of k. f32 is multiplied as tf32.
#pragma once

#include "tw_cuda/async.cuh"
#include "tw_cuda/block_layout.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/mma.cuh"

namespace tw {

// ---- instructions
TW_DEVICE Vec<u32, 4> load_matrices(u32 address) {
  Vec<u32, 4> m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.v[0]), "=r"(m.v[1]), "=r"(m.v[2]), "=r"(m.v[3])
               : "r"(address)
               : "memory");
  return m;
}
TW_DEVICE Vec<u32, 4> load_matrices_transposed(u32 address) {
  Vec<u32, 4> m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.v[0]), "=r"(m.v[1]), "=r"(m.v[2]), "=r"(m.v[3])
               : "r"(address)
               : "memory");
  return m;
}
// f32 to the nearest of 10 bits of mantissa: the tensor cores themselves would cut the rest off.
TW_DEVICE u32 to_tf32(u32 bits) {
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(bits_to_f32(bits)));
  return rounded;
}
TW_DEVICE u32 opaque(u32 address) {
  asm volatile("" : "+r"(address));
  return address;
}

// ---- filling a place
// A block whose first element is `from`: panels along its contiguous axis (x), rows along the other (y). What
// is not below x_end and y_end becomes zeros. kPiece: bytes that are aligned (16, 8 or 4), and inside or
// outside as a whole unless kCut: of the last ones of a row some may be outside. 0: elements one by one.
template <class Block, int kThreads, int kPiece, bool kCut = false, class T>
TW_DEVICE void copy_block(u32 to, const T* from, i64 x_step, i64 y_step, int x_end, int y_end) {
  // Eight chunks of a row stand side by side, then the rows of a panel, then the panels.
  constexpr int kChunks = Block::bytes / 16, kElements = 16 / int(sizeof(T));
  constexpr int kRows = Block::panel_bytes / 128, kRowsAtOnce = kThreads / 8;
  static_assert(kThreads % 64 == 0 && (kThreads & (kThreads - 1)) == 0, "places are thread + constant");
  constexpr bool kEven = kRows % kRowsAtOnce == 0;  // all threads are in one panel
  const int thread = int(opaque(threadIdx.x) % kThreads), row = thread / 8;
  const u32 first = Block::swizzled(u32(thread) * 16);
  const T* const mine = from + row * y_step + thread % 8 * kElements;
  const bool all =
      x_end >= kChunks / 8 / kRows * 8 * kElements && y_end >= kRows;  // known when it is compiled
#pragma unroll
  for (int i = 0; i < (kChunks + kThreads - 1) / kThreads; ++i) {
    if (kChunks % kThreads != 0 && i * kThreads + thread >= kChunks) break;
    const int before = i * kRowsAtOnce, n = before + row;  // rows of panels
    const int panel = kEven ? before / kRows : n / kRows, y = kEven ? before % kRows + row : n % kRows;
    const int x = (panel * 8 + thread % 8) * kElements;
    const u32 place = to + (first ^ Block::swizzle_bits(u32(before))) + u32(before) * 128;
    if constexpr (kPiece > 0) {
      // What this thread adds to a place, and what the place adds, apart: often a constant.
      const T* const at =
          kEven ? mine + before % kRows * y_step + panel * 8 * kElements : from + y * y_step + x;
      constexpr int kEach = kPiece / int(sizeof(T));
#pragma unroll
      for (int e = 0; e < kElements; e += kEach) {
        const bool inside = all || (x + e < x_end && y < y_end);
        const int most = kCut && !all && x_end - x - e < kEach ? (x_end - x - e) * int(sizeof(T)) : kPiece;
        copy_async_to<kPiece>(place + u32(e) * u32(sizeof(T)), at + e, inside ? most : 0);
      }
    } else {
      Vec<T, kElements> some{};
#pragma unroll
      for (int e = 0; e < kElements; ++e)
        if (all || (x + e < x_end && y < y_end)) some.v[e] = from[y * y_step + (x + e) * x_step];
      store_shared16(place, bit_cast<Vec<u32, 4>>(some));
    }
  }
}

// ---- fragments. The words that a lane holds of operand a: rows lane / 4 and 8 below, then the same a half
// step of k further; of b, two blocks of 8 columns, a half step of k each.
// A lane's address is computed once for a block; the others of its fragments are constants further, but for
// two bits that swizzling turns over. The compiler may not look into it: it would compute each anew.
// From a lane's address in a block to that `row` and `k` further: both are constants of whole steps, which
// carry nothing into each other's bits.
template <class Block>
TW_DEVICE u32 further(u32 address, int row, int k) {
  const int x = Block::major == Major::k ? k : row, y = Block::major == Major::k ? row : k;
  return (address ^ u32(x % Block::panel * int(sizeof(typename Block::type)))) +
         u32(x / Block::panel * Block::panel_bytes + y * 128);
}
// Reads two 32-bit words one by one, for blocks in which k is not contiguous (ldmatrix transposes 16 bits
// only): row lane / 4 from `row` on, and of k lane % 4 and 4 further. Odd lanes read the two the other way
// round, so that the eight chunks of 16 bytes lie in different banks.
template <class Block>
TW_DEVICE Vec<u32, 2> load_pair(u32 block, int row, int k) {
  const int lane = int(threadIdx.x % 32), r = row + lane / 4, at = k + lane % 4;
  const bool odd = lane % 2 != 0;
  const u32 first = load_shared(block + Block::place(r, odd ? at + 4 : at)),
            second = load_shared(block + Block::place(r, odd ? at : at + 4));
  return odd ? Vec<u32, 2>{second, first} : Vec<u32, 2>{first, second};
}

// Operand a of a warp whose rows begin at `first`.
template <class Block>
struct LeftParts {
  u32 block, lane = 0;
  int first;
  TW_DEVICE LeftParts(u32 from, int row) : block(from), first(row) {
    const int l = int(threadIdx.x % 32);
    if constexpr (Block::major == Major::k)
      lane = opaque(block + Block::place(row + l % 16, l / 16 * (Block::step / 2)));
    else
      lane = opaque(block + Block::place(row + l / 8 % 2 * 8, l / 16 * 8 + l % 8));
  }
  TW_DEVICE Vec<u32, 4> load(int row, int k) const {
    Vec<u32, 4> m;
    if constexpr (Block::major == Major::k) {
      m = load_matrices(further<Block>(lane, row, k));
    } else if constexpr (sizeof(typename Block::type) == 2) {
      m = load_matrices_transposed(further<Block>(lane, row, k));
    } else {
      const Vec<u32, 2> upper = load_pair<Block>(block, first + row, k),
                        lower = load_pair<Block>(block, first + row + 8, k);
      m = {upper.v[0], lower.v[0], upper.v[1], lower.v[1]};
    }
    if constexpr (same<typename Block::type, f32>) {
#pragma unroll
      for (int i = 0; i < 4; ++i) m.v[i] = to_tf32(m.v[i]);
    }
    return m;
  }
};
// Operand b of a warp whose columns begin at `first`; kNext: from a block of columns to the next one.
template <class Block, int kNext>
struct RightParts {
  u32 block, lane = 0;
  int first;
  TW_DEVICE RightParts(u32 from, int column) : block(from), first(column) {
    const int l = int(threadIdx.x % 32), n = column + l / 16 * kNext;
    if constexpr (Block::major == Major::k)
      lane = opaque(block + Block::place(n + l % 8, l / 8 % 2 * (Block::step / 2)));
    else
      lane = opaque(block + Block::place(n, l / 8 % 2 * (Block::step / 2) + l % 8));
  }
  TW_DEVICE Vec<u32, 4> load(int column, int k) const {
    Vec<u32, 4> m;
    if constexpr (Block::major == Major::k) {
      m = load_matrices(further<Block>(lane, column, k));
    } else if constexpr (sizeof(typename Block::type) == 2) {
      m = load_matrices_transposed(further<Block>(lane, column, k));
    } else {
      const Vec<u32, 2> one = load_pair<Block>(block, first + column, k),
                        other = load_pair<Block>(block, first + column + kNext, k);
      m = {one.v[0], one.v[1], other.v[0], other.v[1]};
    }
    if constexpr (same<typename Block::type, f32>) {
#pragma unroll
      for (int i = 0; i < 4; ++i) m.v[i] = to_tf32(m.v[i]);
    }
    return m;
  }
};

// ---- multiplying
// acc += a · b for one block of k by warps that stand in rows of kAcross (layout.h, RowMap::mma).
template <class A, class B, int kThreads, int kAcross, int kRows, int kCols>
TW_DEVICE void mma_block(Vec<f32, 2> (&acc)[kRows][kCols], u32 a, u32 b) {
  static_assert(kCols % 2 == 0, "ldmatrix brings two blocks of 8 columns");
  constexpr int kDown = kThreads / 32 / kAcross;
  const int warp = int(threadIdx.x % kThreads) / 32;
  const LeftParts<A> left_parts(a, warp / kAcross * 16);
  const RightParts<B, kAcross * 8> right_parts(b, warp % kAcross * 8);
#pragma unroll
  for (int k = 0; k < A::depth; k += A::step) {
    Vec<u32, 4> left[kRows / 2];
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) left[i] = left_parts.load(i * kDown * 16, k);
#pragma unroll
    for (int c = 0; c < kCols; c += 2) {
      const Vec<u32, 4> right = right_parts.load(c * kAcross * 8, k);
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        mma<typename A::type>(acc[2 * i][c], acc[2 * i + 1][c], left[i], right.v[0], right.v[1]);
        mma<typename A::type>(acc[2 * i][c + 1], acc[2 * i + 1][c + 1], left[i], right.v[2], right.v[3]);
      }
    }
  }
}

// acc += a · b with a in registers, as the accumulator of a product lies: its columns are the depth of b, and
// the warps stand below one another.
template <class B, class T, int kRows, int kDeep, int kCols>
TW_DEVICE void mma_block(Vec<f32, 2> (&acc)[kRows][kCols], const Vec<T, 2> (&a)[kRows][kDeep], u32 b) {
  static_assert(kDeep * 8 == B::depth && sizeof(T) == 2, "operands meet");
  static_assert(kCols % 2 == 0, "ldmatrix brings two blocks of 8 columns");
  const RightParts<B, 8> right_parts(b, 0);
#pragma unroll
  for (int k = 0; k < B::depth; k += B::step) {
#pragma unroll
    for (int c = 0; c < kCols; c += 2) {
      const Vec<u32, 4> right = right_parts.load(c * 8, k);
#pragma unroll
      for (int i = 0; i < kRows; i += 2) {
        const int at = k / 8;
        const Vec<u32, 4> left = {bit_cast<u32>(a[i][at]), bit_cast<u32>(a[i + 1][at]),
                                  bit_cast<u32>(a[i][at + 1]), bit_cast<u32>(a[i + 1][at + 1])};
        mma<T>(acc[i][c], acc[i + 1][c], left, right.v[0], right.v[1]);
        mma<T>(acc[i][c + 1], acc[i + 1][c + 1], left, right.v[2], right.v[3]);
      }
    }
  }
}

}  // namespace tw
