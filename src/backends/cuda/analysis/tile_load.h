// What a tile's epilogue loads for all of its elements, and the copy engine can bring to shared memory: plain
// blocks of views, at places that the program and the arguments decide.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"

namespace tilewright::cuda {

struct TileLoad {
  const tile::Op* op = nullptr;
  TensorBlock block;  // a panel of 128 bytes by 64 rows, as results leave
};

// The loads behind `dot`'s loop, or before it, of tiles of its result's shape; others wait for memory
// themselves.
std::vector<TileLoad> find_tile_loads(const tile::Kernel& kernel, const tile::Op& dot);

}  // namespace tilewright::cuda
