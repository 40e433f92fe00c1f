// Values in pieces of rows: what is too large to keep, and read row by row, is computed a piece at a time.
// Statistics of the piece's rows are taken, and the products that read it read the piece, before the next one
// takes its place. Nothing is computed twice: the logits of a language model and their gradient are such
// values, tokens × classes.
#pragma once

#include "passes/fuse/recompute.h"

#include <tilewright/tile/target.h>

#include <optional>

namespace tilewright::passes {

struct RowChunks {
  ir::Graph graph;
  Index pieces = 0;
  double whole_bytes = 0;  // of the product
  double held_bytes = 0;   // of its piece, of what products read of that, and of sums over the pieces
};

struct RowChunkOptions {
  double least_bytes = kMany;  // of a product that is cut
  double piece_bytes = 0;      // a piece is not made smaller than this, nor than what the product is made of
  double most_bytes = kMany / 2;    // of a piece of the product: what a program can spare (chosen)
  double most_for_sums = 1.0 / 10;  // what sums over pieces may take beside the products (chosen)
};

// Cuts the outermost axis (rows, or a batch) of a product, and of everything that is made of it row by row,
// up to products that read it. These are put together from the pieces, or summed over them in the type sums
// have, where the rows are their depth; such a sum is read and written once more for each piece, which limits
// how many there are beyond those that a piece of most_bytes asks for. None where something else reads a
// large value of them, or the pieces are needed for one another. `graph` is materialized.
std::optional<RowChunks> chunk_rows(const ir::Graph& graph, const tile::Target& target,
                                    const RowChunkOptions& options);

}  // namespace tilewright::passes
