// Dots by tile registers: eight of 16 rows of 64 bytes, and an instruction that adds the product of two of
// them to a third. A tile of a is 16 rows of 16 words; one of b 16 steps of 16 columns' words, as dot_pack.h
// packs both already.
#pragma once
#include "tw_cpu/dot_pack.h"

namespace tw {

// Tile registers of their full size, from here to the end of the scope. They belong to the thread, and what
// they hold is saved with its other registers for as long as they are configured.
struct TileRegisters {
#ifdef TW_TILES
  TileRegisters() {
    struct alignas(64) {
      u8 palette, start_row, reserved[14];
      u16 row_bytes[16];
      u8 rows[16];
    } const shape = {1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    __builtin_ia32_tile_loadconfig(&shape);
  }
  ~TileRegisters() { __builtin_ia32_tilerelease(); }
#endif
};

#ifdef TW_TILES

// Rows of a tile, its words in a row, and what is multiplied at once: 2 x 2 tiles of c, for which two of a
// and two of b are read. They take all eight registers.
constexpr i64 kTile = 16, kTileBlock = 2 * kTile;
static_assert(kTile == TW_LANES);

// Rows of a are fetched ahead beside so many columns: a line of a row then takes 16 cycles to multiply, and
// to ask for it one or two.
constexpr i64 kFetchedColumns = 256;

template <class E, int Columns, int Depth>
struct TileRoom {
  static constexpr i64 kSteps = ((Depth + E::kDepth - 1) / E::kDepth + kTile - 1) / kTile * kTile;
  static constexpr i64 kPanel = kSteps * kTileBlock;
  static constexpr i64 kBytes = (Columns + kTileBlock - 1) / kTileBlock * kPanel * (i64)sizeof(u32);
  static constexpr i64 kStride = kSteps + kTile;  // rows of a power of two would meet in the cache
};

// Rows of a as words, `stride` bytes from one to the next.
struct TileRows {
  const char* at;
  i64 stride;
  const char* word(i64 row, i64 step) const { return at + row * stride + step * (i64)sizeof(u32); }
};

// Down x Across tiles of c, along the whole inner dimension, by a panel of as many columns.
template <class E, DotStart Start, int Down, int Across>
static __attribute__((noinline)) void tile_block(TileRows left, const u32* right, typename E::sum* c,
                                                 i64 c_stride, i64 steps) {
  const i64 row = c_stride * (i64)sizeof(*c), step = Across * kTile, right_row = step * (i64)sizeof(u32);
  typename E::sum* const below = c + kTile * c_stride;
  if constexpr (Start == DotStart::zeros) {
    __builtin_ia32_tilezero(0);
    if constexpr (Across > 1) __builtin_ia32_tilezero(1);
    if constexpr (Down > 1) __builtin_ia32_tilezero(2);
    if constexpr (Down * Across > 2) __builtin_ia32_tilezero(3);
  } else {
    __builtin_ia32_tileloadd64(0, c, row);
    if constexpr (Across > 1) __builtin_ia32_tileloadd64(1, c + kTile, row);
    if constexpr (Down > 1) __builtin_ia32_tileloadd64(2, below, row);
    if constexpr (Down * Across > 2) __builtin_ia32_tileloadd64(3, below + kTile, row);
  }
  for (i64 k = 0; k < steps; k += kTile) {
    __builtin_ia32_tileloadd64(6, right + k * step, right_row);
    __builtin_ia32_tileloadd64(4, left.word(0, k), left.stride);
    E::template multiply<0, 4, 6>();
    if constexpr (Across > 1) {
      __builtin_ia32_tileloadd64(7, right + k * step + kTile, right_row);
      E::template multiply<1, 4, 7>();
    }
    if constexpr (Down > 1) {
      __builtin_ia32_tileloadd64(5, left.word(kTile, k), left.stride);
      E::template multiply<2, 5, 6>();
      if constexpr (Across > 1) E::template multiply<3, 5, 7>();
    }
  }
  __builtin_ia32_tilestored64(0, c, row);
  if constexpr (Across > 1) __builtin_ia32_tilestored64(1, c + kTile, row);
  if constexpr (Down > 1) __builtin_ia32_tilestored64(2, below, row);
  if constexpr (Down * Across > 2) __builtin_ia32_tilestored64(3, below + kTile, row);
}

// A block of which c has only `rows` rows goes by a copy of them.
template <class E, DotStart Start, int Down, int Across>
static void tile_edge(TileRows left, const u32* right, typename E::sum* c, i64 c_stride, i64 steps,
                      i64 rows) {
  alignas(64) typename E::sum copy[Down * kTile * kTileBlock];
  if constexpr (Start == DotStart::sums)
    for (i64 r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < Across; ++v)
        store(copy + r * kTileBlock + v * kTile, load(c + r * c_stride + v * kTile));
  tile_block<E, Start, Down, Across>(left, right, copy, kTileBlock, steps);
  for (i64 r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Across; ++v)
      store(c + r * c_stride + v * kTile, load(copy + r * kTileBlock + v * kTile));
}

// A block of memory that is fetched to L2 a few rows at a time.
struct FetchAhead {
  const char* at;
  i64 stride, rows, bytes;  // of a row
  void part(i64 begin, i64 end) const {
    for (i64 r = begin; r < end; ++r)
      for (i64 b = 0; b < bytes; b += 64) __builtin_prefetch(at + r * stride + b, 0, 2);
  }
};

// The rows of a after `m`, as they stand in memory.
template <class A>
static FetchAhead rows_after(const A& a, i64 m) {
  constexpr i64 kBytes = sizeof(typename A::stored);
  const i64 left = a.outer - m, rows = left < kTileBlock ? left : kTileBlock;
  if (rows <= 0) return {nullptr, 0, 0, 0};
  const char* at = (const char*)(a.at + m * a.outer_stride);
  if (a.together()) return {at, a.outer_stride * kBytes, rows, a.inner * kBytes};
  return {at, a.inner_stride * kBytes, a.outer_stride == 1 ? a.inner : 0, rows * kBytes};
}

// At most Down tiles of rows of c, all columns. What `next` names is fetched meanwhile.
template <class E, class Room, DotStart Start, int Down>
static void tile_rows(TileRows left, const u32* right, typename E::sum* c, i64 c_stride, i64 columns,
                      i64 steps, i64 rows, const FetchAhead& next) {
  const i64 panels = (columns + kTileBlock - 1) / kTileBlock;
  for (i64 n = 0, panel = 0; n < columns; n += kTileBlock, right += Room::kPanel, ++panel) {
    next.part(next.rows * panel / panels, next.rows * (panel + 1) / panels);
    const bool two = n + kTile < columns;
    if (rows == Down * kTile) {
      if (two)
        tile_block<E, Start, Down, 2>(left, right, c + n, c_stride, steps);
      else
        tile_block<E, Start, Down, 1>(left, right, c + n, c_stride, steps);
    } else if (two) {
      tile_edge<E, Start, Down, 2>(left, right, c + n, c_stride, steps, rows);
    } else {
      tile_edge<E, Start, Down, 1>(left, right, c + n, c_stride, steps, rows);
    }
  }
}

template <class E, Neighbours Inner, int Outer, class T = typename TilesOf<E>::type>
static DotOperand<T, Inner, Outer> as_tiles(const DotOperand<E, Inner, Outer>& x) {
  return {x.at, x.outer_stride, x.inner_stride, x.outer, x.inner};
}

// Rows of a that are tiles as they stand in memory: whole ones that lie together, so that they do not meet in
// the cache.
template <class A>
static bool stands_in_tiles(const A& a, i64 steps, i64 rows) {
  return rows % kTile == 0 && a.together() && a.inner >= steps * A::element::kDepth &&
         a.outer_stride <= 2 * a.inner;
}

// dot() of dot.h by tiles: b is packed once, a by 32 rows where it does not stand in tiles already.
template <int Columns, int Depth, DotStart Start, class A, class B>
static void dot_by_tiles(const A& a, const B& b, typename B::element::sum* c, i64 c_stride, void* room) {
  typedef typename B::element E;
  typedef TileRoom<E, Columns, Depth> Room;
  auto* right = (u32*)room;
  alignas(64) u32 packed[kTileBlock * Room::kStride];
  const i64 inner = a.inner > b.inner ? a.inner : b.inner;
  const i64 steps = (inner + E::kDepth * kTile - 1) / (E::kDepth * kTile) * kTile;
  for (i64 n = 0; n < b.outer; n += kTileBlock) {
    u32* panel = right + n / kTileBlock * Room::kPanel;
    if (n + kTile < b.outer)
      pack_right<kTileBlock>(b, n, steps, panel);
    else
      pack_right<kTile>(b, n, steps, panel);
  }
  for (i64 m = 0; m < a.outer; m += kTileBlock) {
    const i64 rows = a.outer - m < kTileBlock ? a.outer - m : kTileBlock;
    TileRows left = {(const char*)packed, Room::kStride * (i64)sizeof(u32)};
    if (stands_in_tiles(a, steps, rows))
      left = {(const char*)(a.at + m * a.outer_stride), a.outer_stride * (i64)sizeof(typename E::stored)};
    else
      pack_left<kTileBlock, Room::kStride>(a, m, steps, packed);
    const FetchAhead next = rows_after(a, Columns < kFetchedColumns ? a.outer : m + kTileBlock);
    if (rows > kTile)
      tile_rows<E, Room, Start, 2>(left, right, c + m * c_stride, c_stride, b.outer, steps, rows, next);
    else
      tile_rows<E, Room, Start, 1>(left, right, c + m * c_stride, c_stride, b.outer, steps, rows, next);
  }
}

#endif

// Bytes that a dot packs of b: `by_vectors` where tiles do not multiply it.
template <class E, int Columns, int Depth>
constexpr i64 dot_room_bytes(i64 by_vectors) {
#ifdef TW_TILES
  if constexpr (TilesOf<E>::kThere) return TileRoom<typename TilesOf<E>::type, Columns, Depth>::kBytes;
#endif
  return by_vectors;
}

}  // namespace tw
