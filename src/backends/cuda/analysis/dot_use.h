// What a schedule's unit makes of a kernel's dots, and the loop plan without what it takes over.
#pragma once

#include "backends/cuda/analysis/b2b_matmul.h"
#include "backends/cuda/analysis/tensor_dot.h"
#include "backends/cuda/analysis/tile_load.h"
#include "backends/cuda/analysis/tile_store.h"

#include <optional>

namespace tilewright::cuda {

// All empty where no dot is for tensor cores or blocks.
struct DotUse {
  std::optional<TensorDot> dot;  // a loop of one dot, or
  std::optional<B2bMatmul> b2b;
  // Tiles that come by the results' stages, as many as these have room for.
  std::vector<TileLoad> loads;
  std::vector<TileStore> results;  // tiles that leave by stages, where the schedule wants that
};

// Tensor maps of the two operands, which come before those of `loads`.
inline constexpr std::size_t kOperandMaps = 2;
// Stages of each result where a tile comes by them: for a piece that arrives, and one that is computed and
// then leaves.
inline constexpr Index kFetchStages = 2;

// Why the schedule's kind cannot run the kernel's dots, as a failure of kind unsupported.
Result<DotUse> find_dots(const tile::Kernel& kernel, const tile::Schedule& schedule);

// The tensor maps that a printed kernel takes after its other parameters; none unless the unit is wgmma.
std::vector<TensorBlock> tensor_blocks(const tile::Kernel& kernel, const tile::Schedule& schedule,
                                       const DotUse& dots);
std::vector<TensorBlock> tensor_blocks(const tile::Kernel& kernel, const tile::Schedule& schedule);

// The loop plan under a schedule. Operands that the unit reads from blocks of memory never stand in registers
// as tiles: the plan leaves them out, and the printer writes their loop as a pipeline.
printer::LoopPlan plan_for(const tile::Kernel& kernel, const tile::Schedule& schedule, const DotUse& dots);

}  // namespace tilewright::cuda
