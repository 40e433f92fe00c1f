// What each kind of schedule wants of a kernel, and where its blocks lie in shared memory. Each fails with
// the reason where the schedule cannot be.
#pragma once

#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// Before the element loops are planned.
Status check_kind(const tile::Kernel& kernel, const tile::CpuLoops& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::ElementLoops& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::MmaDot& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::FmaBlocks& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::MmaB2b& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::WgmmaDot& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::WgmmaPingpong& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::WgmmaB2b& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::WgmmaScaled& kind, CudaPlan& plan);
Status check_kind(const tile::Kernel& kernel, const tile::LibraryCall& kind, CudaPlan& plan);

// Places in shared memory are given after check_kind(), when it is known how much the threads exchange.
Status place_blocks(const tile::CpuLoops& kind, CudaPlan& plan);
Status place_blocks(const tile::ElementLoops& kind, CudaPlan& plan);
Status place_blocks(const tile::MmaDot& kind, CudaPlan& plan);
Status place_blocks(const tile::FmaBlocks& kind, CudaPlan& plan);
Status place_blocks(const tile::MmaB2b& kind, CudaPlan& plan);
Status place_blocks(const tile::WgmmaDot& kind, CudaPlan& plan);
Status place_blocks(const tile::WgmmaPingpong& kind, CudaPlan& plan);
Status place_blocks(const tile::WgmmaB2b& kind, CudaPlan& plan);
Status place_blocks(const tile::WgmmaScaled& kind, CudaPlan& plan);
Status place_blocks(const tile::LibraryCall& kind, CudaPlan& plan);

// Blocks of operands begin at a multiple of it.
inline constexpr Index kSwizzleBytes = 1024;

const TileFrame& result_frame(const CudaPlan& plan, const tile::Op& dot);
// Whether an operand that is multiplied from registers stands there as an accumulator does.
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
