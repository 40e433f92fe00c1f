// Results that leave in pieces by way of shared memory: each tile of a program is a plain block of a view.
// The copy engine stores them while the next tile is multiplied; where it cannot, since rows begin anywhere,
// the threads do, a row of a piece at a time.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"

namespace tilewright::cuda {

// What leaves at once: rows of a warpgroup, in shared memory as operands lie there.
inline constexpr Index kPieceRows = 64, kPieceBytes = kPieceRows * kPanelBytes;

struct TileStore {
  const tile::Op* op = nullptr;
  TensorBlock block;      // a piece; its dimensions are those of columns, rows, then the others
  bool by_engine = true;  // else the threads store it
  Index columns() const { return block.box[0]; }
};

// Whether an op loads the tile that another stores, as an update in place does: the thread that writes an
// element has read it before.
bool loads_same_tile(const tile::Kernel& kernel, const tile::Op& op, const tile::Op& store);

// All stores of tiles that have the shape of `dot`'s result, one at least; their pieces have as many columns,
// and all are stored by the copy engine or all by threads. Why not, as a failure of kind unsupported.
Result<std::vector<TileStore>> find_tile_stores(const tile::Kernel& kernel, const tile::Op& dot);

}  // namespace tilewright::cuda
