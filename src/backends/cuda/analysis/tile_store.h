// A result that the copy engine can store: the tile of a program is a plain block of a view, and leaves in
// pieces by way of shared memory while the next tile is multiplied.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"

namespace tilewright::cuda {

// What leaves at once: rows of a warpgroup, in shared memory as operands lie there.
inline constexpr Index kPieceRows = 64, kPieceBytes = kPieceRows * kPanelBytes;

struct TileStore {
  const tile::Op* op = nullptr;
  TensorBlock block;  // a piece; its dimensions are those of columns, rows, then the others
  Index columns() const { return block.box[0]; }
};

// The only store of a tile that the shape of `dot`'s result has. Why not, as a failure of kind unsupported.
Result<TileStore> find_tile_store(const tile::Kernel& kernel, const tile::Op& dot);

}  // namespace tilewright::cuda
