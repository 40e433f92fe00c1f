// TensorDot: a kernel's loop of one dot as a pipeline that tensor cores (or the ordinary units) multiply
// from: where the operands' blocks lie in memory and which of their axes is contiguous.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"
#include "backends/printer/loop_plan.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

#include <vector>

namespace tilewright::cuda {

struct TensorDot {
  const tile::Op* loop = nullptr;
  const tile::Op* dot = nullptr;
  TensorOperand a, b;
  DType dtype = DType::bf16;
  Index trips = 0;         // of the loop; 0 when arguments decide
  bool two_level = false;  // each block's product is added to the accumulator by itself (8-bit floats)
  bool from_zero = false;  // the accumulator starts as zeros, and the loop runs at least once
};

// Why a kernel's dots cannot run on `unit`, as a failure of kind unsupported.
Result<TensorDot> find_tensor_dot(const tile::Kernel& kernel, tile::DotUnit unit);

// Threads of a block: those that multiply, and the warpgroup that fetches.
inline constexpr int kWarpgroup = 128;
inline int block_threads(const tile::Schedule& s) {
  return s.threads + (s.dot == tile::DotUnit::wgmma ? kWarpgroup : 0);
}
// Threads that one program has.
inline int program_threads(const tile::Schedule& s) { return s.cutlass_pingpong ? kWarpgroup : s.threads; }
// Whether the threads copy the blocks of later steps of the loop themselves, while they multiply: the stages
// are those of the loop.
inline bool copies_ahead(tile::DotUnit unit) {
  return unit == tile::DotUnit::mma || unit == tile::DotUnit::fma_blocks;
}
inline bool on_tensor_cores(tile::DotUnit unit) {
  return unit == tile::DotUnit::mma || unit == tile::DotUnit::wgmma;
}
// Whether a block carries out one program after another.
inline bool walks_programs(const tile::Schedule& s) {
  return s.persistent || (s.stages > 1 && !copies_ahead(s.dot));
}
// Blocks of a cluster that share a tile's row; those of a multicast share none.
inline int row_cluster(const tile::Schedule& s) { return s.dot == tile::DotUnit::wgmma ? 1 : s.cluster; }

}  // namespace tilewright::cuda
