// TileEmitter: writes a LoopNest as tile IR, once it is decided which loop variables the tile's axes
// walk.
#pragma once

#include "passes/masks/unmasked_blocks.h"
#include "passes/nest/tile_shape.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/target.h>

#include <map>

namespace tilewright::passes {

// Memory that lives from one kernel of a group to the next.
struct Temporary {
  DType dtype = DType::f32;
  Index elements = 0;
};

struct BufferSource {
  ir::NodeId node = -1;  // or
  int temporary = -1;
  Index offset = 0;  // elements
  friend bool operator==(const BufferSource&, const BufferSource&) = default;
};

struct EmittedKernel {
  tile::Kernel kernel;
  std::vector<BufferSource> views;
  std::string note;                            // for explain(): what masks leave of its loops
  std::vector<KnownBlocks> known_blocks = {};  // of its masks
};

// With shape.split_k > 1, writes partial results to temporary i (the i-th of shared_parts()), laid out
// [split_k][partial_variables]; otherwise, and with shape.combines from these, the program's outputs.
EmittedKernel emit_tiles(const ir::Graph& graph, const LoopNest& nest, const TileShape& shape,
                         const std::string& name, const std::vector<Temporary>& temporaries);

}  // namespace tilewright::passes
