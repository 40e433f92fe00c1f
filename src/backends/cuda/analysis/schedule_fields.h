// What a schedule says of whatever its kind is: fields that several kinds have by one name, with what the
// other kinds do in their stead.
#pragma once

#include <tilewright/tile/schedule.h>

namespace tilewright::cuda {

inline constexpr int kWarpgroup = 128;

int threads_per_row(const tile::Schedule& schedule);  // on tensor cores the four lanes that share a row
int stages(const tile::Schedule& schedule);
int group_m(const tile::Schedule& schedule);
bool is_longest_first(const tile::Schedule& schedule);
int store_stages(const tile::Schedule& schedule);
// Blocks of a cluster: of one that shares a tile, and of any.
int row_cluster(const tile::Schedule& schedule);
int launched_cluster(const tile::Schedule& schedule);
// Programs of tiles of two axes in one block.
int side_by_side(const tile::Schedule& schedule);
bool is_pingpong(const tile::Schedule& schedule);
tile::Rounds rounds(const tile::Schedule& schedule);

// Whether the kind is one for back-to-back dots or scaled accumulation.
bool is_for_chains(const tile::Schedule& schedule);
inline bool is_wgmma(const tile::Schedule& s) { return dot_unit(s) == tile::DotUnit::wgmma; }
inline bool on_tensor_cores(tile::DotUnit unit) {
  return unit == tile::DotUnit::mma || unit == tile::DotUnit::wgmma;
}

// Threads of a block: those that multiply, and the warpgroup that fetches.
inline int block_threads(const tile::Schedule& s) { return s.threads + (is_wgmma(s) ? kWarpgroup : 0); }
// Threads that one program has.
inline int program_threads(const tile::Schedule& s) { return is_pingpong(s) ? kWarpgroup : s.threads; }
// Whether a block carries out one program after another.
bool walks_programs(const tile::Schedule& schedule);

}  // namespace tilewright::cuda
