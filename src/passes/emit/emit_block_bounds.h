// Block bounds as kernels see them: the kernel that writes them, and the loads of the one whose loop they
// bound.
#pragma once

#include "passes/emit/emit_state.h"
#include "passes/masks/block_bounds.h"
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

// Its view, and where the numbers of the program that is being written stand in it.
struct PlacedBounds {
  tile::View view;
  std::vector<tile::Operand> starts;
};
PlacedBounds place_bounds(EmitState& state, const BlockBounds& bounds, const TileShape& shape, Index kind);

// Writes them to temporary shape.block_bounds.
EmittedKernel emit_block_bounds(const ir::Graph& graph, const LoopNest& nest, const BlockBounds& bounds,
                                const TileShape& shape, const std::string& name,
                                const std::vector<Temporary>& temporaries);

// Block bounds of the program that is being written: whole blocks, inside the extent.
struct LoadedBounds {
  tile::Value first, end;
  std::vector<BlockBounds::Mask> masks;
  tile::Value whole_first, whole_end;  // with masks
};
LoadedBounds load_block_bounds(EmitState& state, const BlockBounds& bounds, const TileShape& shape);

}  // namespace tilewright::passes
