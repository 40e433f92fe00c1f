// Values in chunks: what is too large to store, and too dear to compute again in every kernel that reads it,
// is computed again a piece at a time, each of which several products read before the next takes its place.
// The gradient of a loss over a large vocabulary is such a value: rows × classes, of a product whose depth no
// tile holds, read by two products.
#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace tilewright::passes {

inline constexpr Index kMostPieces = 32;  // put together by one kernel that reads them all (kMaxViews)

// A value is small beside a product that is cut if it has at most a fourth of the product's elements: it may
// lie in memory as a whole. Chosen, not measured.
inline constexpr Index kSmallerThanProduct = 4;

// Arithmetic whose elements do not depend on their places, as random numbers do.
bool is_plain(const ir::Node& node);

struct ChunkedMatmul {
  ir::Graph graph;
  // Nodes of the graph that was cut: the product with what is made of it, and the products that read it.
  std::vector<ir::NodeId> made, readers;
  Index chunks = 0;
  double chunk_bytes = 0, whole_bytes = 0;
};

// Which products are large enough: of more bytes than `least_bytes` and than `times` their operands'.
struct ChunkOptions {
  double times = 2;  // one product more is computed, not several: less than kMuchLarger
  double least_bytes = 0;
};

// Cuts the columns of a product that is reduced to epilogue reductions of its rows, and whose elementwise
// descendants other products read: these are summed over the chunks, in the type sums have, or put together
// from them. A piece is no larger than what the product is made of, or than `least_bytes` if that is more.
// None where no product is large enough, or something else reads it. `graph` is materialized.
std::optional<ChunkedMatmul> chunk_matmul(const ir::Graph& graph, const ChunkOptions& options = {});

}  // namespace tilewright::passes
