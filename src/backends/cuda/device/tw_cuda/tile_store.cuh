// Results that leave a warpgroup by way of shared memory: pieces of 64 rows of 128 bytes, swizzled as
// operands are (block_layout.cuh), which the copy engine stores while the warpgroup goes on. Thread t of it
// has rows 16 (t / 32) + t % 32 / 4 + 8 half of a piece, and of every 8 columns two (wgmma.cuh). A tile that
// the results are computed with comes the same way: the copy engine brings a piece of it to the stage that
// the result's piece leaves by, and each warp overwrites what it has read.
#pragma once

#include "tw_cuda/pipeline.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

inline constexpr u32 kPieceBytes = 64 * 128;

// The stage `ahead` of another, by less than all of them.
template <int kStages>
TW_DEVICE u32 ring_stage(u32 stage, int ahead) {
  const u32 at = stage + u32(ahead);
  return ahead == 0 || at < kStages ? at : at - kStages;
}
// One warpgroup's stages; kResults of them are written together, while others are read.
template <int kStages, int kResults>
struct TmaStoreStages {
  static constexpr int kUnread = kStages - 2 * kResults;  // that may still be read when others are sent
  u32 stages;                                             // shared address of the first
  u32 stage = 0;
  TW_DEVICE u32 piece(int result) const { return stages + ring_stage<kStages>(stage, result) * kPieceBytes; }
  TW_DEVICE void next() { stage = ring_stage<kStages>(stage, 1); }
};
// Stages to which pieces of kTiles tiles come, two ahead of those that are computed: the i-th tile's to that
// by which the i-th result leaves, or to one of its own where there are more tiles than results; kSlots for
// all of a piece. Of three stages for each one leaves meanwhile; of two, what comes waits until the engine
// has read what leaves.
template <int kStages, int kSlots, int kTiles>
struct TmaTileStages {
  static_assert(kStages >= 2 * kSlots && kTiles <= kSlots, "one piece comes while another is computed");
  static constexpr bool kLeavesMeanwhile = kStages >= 3 * kSlots;
  static constexpr int kUnread = 0;
  u32 stages;
  Barrier* full;  // of each stage
  u32 stage = 0;
  u32 phases = 0;  // the parity of each stage's barrier
  TW_DEVICE u32 piece(int result) const { return stages + ring_stage<kStages>(stage, result) * kPieceBytes; }
  TW_DEVICE void next() { stage = ring_stage<kStages>(stage, 1); }
  // Past stages that no result leaves by.
  TW_DEVICE void skip(int unused) { stage = ring_stage<kStages>(stage, unused); }
  TW_DEVICE void wait() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const u32 at = ring_stage<kStages>(stage, i);
      barrier_wait(full[at], phases >> at & 1);
      phases ^= 1u << at;
    }
  }
};
// Opens the barriers of stages of tiles, by thread 0; called before open_pipeline().
template <int kGroups, int kStages>
TW_DEVICE void open_tile_stages(Barrier (&full)[kGroups][kStages]) {
  static_assert(kStages >= 2, "one comes while another is computed");
  if (threadIdx.x > 0) return;
  for (int i = 0; i < kGroups * kStages; ++i) barrier_init(full[i / kStages][i % kStages], 1);
}

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

// What `put` takes, of a piece that the copy engine brought.
template <class T>
TW_DEVICE void get(u32 piece, int half, int block, Vec<T, 2>* parts) {
  const u32 lane = threadIdx.x % 32, first_row = threadIdx.x % 128 / 32 * 16 + u32(half) * 8;
  if constexpr (sizeof(T) == 2) {
    const u32 at = piece + (first_row + lane % 8) * 128 + (((u32(block) + lane / 8) ^ lane % 8) << 4);
    u32 words[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(at)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) parts[i] = bit_cast<Vec<T, 2>>(words[i]);
  } else {
    const u32 at = piece + (first_row + lane / 4) * 128 + lane % 2 * 8;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 chunk = 2 * (u32(block) + i) + lane % 4 / 2;
      parts[i] = bit_cast<Vec<T, 2>>(load_shared8(at + ((chunk ^ lane / 4) << 4)));
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

// The pieces are written. Afterwards the next stages are free: the one thread that stores has seen that the
// copy engine has read them, before the barrier at which all of them wait.
template <class Stages>
TW_DEVICE void end_of_pieces(const Stages&, int group) {
  static_assert(Stages::kUnread >= 0, "too few stages");
  bulk_store_fence();
  if (threadIdx.x % 128 == 0) bulk_wait_read<Stages::kUnread>();
  warpgroup_sync(group);
}
// One of them: off it goes.
template <class Stages, class... Index>
TW_DEVICE void send(Stages& out, const TensorMap& map, i32 x, Index... outer) {
  if (threadIdx.x % 128 == 0) {
    tma_store(out.piece(0), map, x, outer...);
    bulk_commit();
  }
  out.next();
}
// The words of a row of a piece that begins at row r of it: lane l has the row's l-th.
TW_DEVICE u32 row_word(u32 piece, u32 r) {
  const u32 lane = threadIdx.x % 32;
  return load_shared(piece + r * 128 + ((lane / 4 ^ r % 8) << 4) + lane % 4 * 4);
}
// A row of 64 elements of 16 bits, of which `columns` are in the tensor (none where the row is not), word by
// word. Where no word begins with the row, words hold the second half of one lane's and the first of the
// next: `left` is the lane's before, of lane 0 the one that was `before`, if the row came from another piece
// (`follows`); and the last half waits if it goes on. All lanes of a warp.
TW_DEVICE void store_row(u16* at, u32 word, u32 left, bool follows, bool goes_on, i32 columns) {
  const i32 first = i32(threadIdx.x % 32) * 2;
  const bool odd = reinterpret_cast<u64>(at) % 4 != 0;
  const bool whole = odd ? first < columns && (first > 0 || follows) : first + 1 < columns;
  if (whole)
    *reinterpret_cast<u32*>(at + (odd ? first - 1 : first)) = odd ? __byte_perm(left, word, 0x5432) : word;
  if (follows && goes_on && columns > 64) return;
  // Halves at the row's ends.
  const i32 end = columns < 64 ? columns : 64;
  if (first < columns && (odd ? first == 0 && !follows : first + 1 == columns)) at[first] = u16(word);
  if (odd && (!goes_on || columns <= 64) && end == first + 2) at[first + 1] = u16(word >> 16);
}
// One of them by the threads, a row a warp at a time: rows are `pitch` elements apart, from `to` on, and need
// not be aligned; `rows` and `columns` of them are in the tensor. Lane i of a warp keeps the last word of its
// i-th row in `waiting`. All of the warpgroup have written the piece; it is overwritten behind the next
// piece's barrier. Of kTogether rows no load waits for another's store; 4 take more registers than stand
// beside a tile of 192 columns.
template <int kTogether, class Stages, class T>
TW_DEVICE void send_rows(Stages& out, u32& waiting, bool follows, bool goes_on, T* to, i64 pitch, i32 rows,
                         i32 columns) {
  const u32 warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const u32 piece = out.piece(0);
  T* at = to + i64(warp) * pitch;
#pragma unroll(kTogether / 2)
  for (u32 i = 0; i < 16; i += kTogether) {
    u32 words[kTogether], left[kTogether];
#pragma unroll
    for (u32 j = 0; j < u32(kTogether); ++j) words[j] = row_word(piece, 4 * (i + j) + warp);
    if constexpr (sizeof(T) == 2) {
      const u32 before = waiting;
#pragma unroll
      for (u32 j = 0; j < u32(kTogether); ++j) {
        const u32 of_row = __shfl_sync(~0u, before, int(i + j)), last = __shfl_sync(~0u, words[j], 31);
        left[j] = __shfl_up_sync(~0u, words[j], 1);
        left[j] = lane == 0 ? of_row : left[j];
        waiting = lane == i + j ? last : waiting;
      }
    }
#pragma unroll
    for (u32 j = 0; j < u32(kTogether); ++j) {
      const i32 inside = i32(4 * (i + j) + warp) < rows ? columns : 0;
      if constexpr (sizeof(T) == 2) {
        store_row(reinterpret_cast<u16*>(at), words[j], left[j], follows, goes_on, inside);
      } else if (i32(lane) < inside) {
        reinterpret_cast<u32*>(at)[lane] = words[j];
      }
      at += 4 * pitch;
    }
  }
  out.next();
}
// A piece of tile kTile to the stage of the piece that is `ahead` of the next: behind send() it is free, or
// will be once it is read.
template <int kTile, int kStages, int kSlots, int kTiles, class... Index>
TW_DEVICE void fetch(const TmaTileStages<kStages, kSlots, kTiles>& in, int ahead, const TensorMap& map, i32 x,
                     Index... outer) {
  if (threadIdx.x % 128 > 0) return;
  if constexpr (kTile == 0 && !TmaTileStages<kStages, kSlots, kTiles>::kLeavesMeanwhile) bulk_wait_read<0>();
  const u32 at = ring_stage<kStages>(in.stage, ahead * kSlots + kTile);
  barrier_expect(in.full[at], kPieceBytes);
  tma_load(in.stages + at * kPieceBytes, map, in.full[at], x, outer...);
}
// At the end: a block's shared memory must outlive what is read from it.
TW_DEVICE void close_store_stages() {
  if (threadIdx.x % 128 == 0) bulk_wait_read<0>();
}

}  // namespace tw

#endif
