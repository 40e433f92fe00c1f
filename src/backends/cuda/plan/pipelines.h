// What each pipeline wants of its schedule, and where its blocks lie in shared memory. Each fails with the
// reason where the schedule cannot be.
#pragma once

#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// Before and after the element loops are planned.
Status check_wgmma(const tile::Kernel& kernel, CudaPlan& plan);
Status place_wgmma(CudaPlan& plan);
Status check_copied_dot(const tile::Kernel& kernel, CudaPlan& plan);
void place_copied_dot(CudaPlan& plan);
Status check_cp_async_b2b(const tile::Kernel& kernel, CudaPlan& plan);
Status place_cp_async_b2b(CudaPlan& plan);

// Blocks of operands begin at a multiple of it.
inline constexpr Index kSwizzleBytes = 1024;

const TileFrame& result_frame(const CudaPlan& plan, const tile::Op& dot);
// Whether what is multiplied from registers stands there as an accumulator does.
bool stands_as_accumulator(const CudaPlan& plan, tile::ValueId operand);
// Warpgroups that multiply one program's tile.
inline int dot_warpgroups(const tile::Schedule& s) { return program_threads(s) / kWarpgroup; }
// Whether scaled accumulation has rounds of one product at a time: operand a is memory's.
inline bool accumulates_in_turn(const B2bMatmul& b2b) {
  return b2b.scaled_accumulation() && b2b.dots[0].a >= 0;
}
// Rows of a thread in one block of 64 rows of its warpgroup.
inline constexpr Index kBlockRows = 2;

}  // namespace tilewright::cuda
