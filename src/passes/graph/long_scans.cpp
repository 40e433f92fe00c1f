#include "passes/graph/long_scans.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/replace_nodes.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;

constexpr Index kBlock = 4096;  // chosen: a million elements are 256 blocks

// Elements of one scan. Threads that share a tile keep it in the registers of one block: a row, or as many
// columns as an access takes of what lies side by side. A program of one thread walks memory and is bounded
// by what tile IR allows (tile::kMaxTileElements), with strips of a few columns.
Index longest(const tile::Target& target, const ir::Type& type, Index axis) {
  if (!target.shares_tiles()) return Index{1} << 20;
  Index columns = 1;
  for (int i = static_cast<int>(axis) + 1; i < type.shape.rank(); ++i) columns *= type.shape[i];
  const auto size = static_cast<Index>(size_bytes(type.dtype));
  const Index least = std::clamp<Index>(columns, 1, std::max<Index>(target.vector_bytes / size, 1));
  return std::max<Index>(target.held_elements(size) / least, 1);
}

// The op itself: the building functions would widen integers.
Value scan(const ir::Op& op, Value x, Index axis) {
  return {x.graph, x.graph->add(op, {x.id}, {{"axis", axis}})};
}

Value combined(const ir::Op& op, Value a, Value b) {
  if (&op == &ops::kCumsum) return a + b;
  if (&op == &ops::kCumprod) return a * b;
  TW_CHECK(&op == &ops::kCummax || &op == &ops::kCummin, "a scan that is not known here");
  return &op == &ops::kCummax ? ops::maximum(a, b) : ops::minimum(a, b);
}

Value in_blocks(const ir::Op& op, Value x, Index axis, Index most) {
  const int at = static_cast<int>(axis);
  const Index length = x.shape()[at];
  if (length <= most) return scan(op, x, axis);
  const Index block = std::min(kBlock, most), blocks = (length + block - 1) / block;
  std::vector<Index> extents = x.shape().extents();
  extents[static_cast<std::size_t>(at)] = blocks;
  extents.insert(extents.begin() + at + 1, block);
  // What the last block lacks is behind every element: any value will do.
  const Value whole = ops::reshape(ops::pad_axis(x, axis, 0, blocks * block - length), Shape(extents));
  const Value within = scan(op, whole, axis + 1);
  const Value last = ops::select(within, axis + 1, block - 1);  // one an element of `blocks`
  // The first block has nothing before it; each other one what the blocks before it come to.
  const Value before = in_blocks(op, ops::slice_axis(last, axis, {0, blocks - 1}), axis, most);
  const Value first = ops::slice_axis(within, axis, {0, 1}),
              others = ops::slice_axis(within, axis, {1, blocks});
  const Value rest =
      combined(op, ops::broadcast_to(ops::unsqueeze(before, axis + 1), others.shape()), others);
  std::vector<Index> padded = x.shape().extents();
  padded[static_cast<std::size_t>(at)] = blocks * block;
  return ops::slice_axis(ops::reshape(ops::concat({first, ops::cast(rest, x.dtype())}, axis), Shape(padded)),
                         axis, {0, length});
}

}  // namespace

ir::Graph with_scans_in_blocks(const ir::Graph& graph, const tile::Target& target) {
  const auto most = [&](const ir::Node& n) { return longest(target, n.type, n.attrs.integer("axis")); };
  const auto is_long = [&](const ir::Node& n) {
    return n.op->kind == OpClass::scan && n.type.shape[static_cast<int>(n.attrs.integer("axis"))] > most(n);
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_long)) return graph;
  return replace_nodes(graph, [&](const ir::Node& n, const std::vector<Value>& operands) {
    return is_long(n) ? std::optional(in_blocks(*n.op, operands[0], n.attrs.integer("axis"), most(n)))
                      : std::nullopt;
  });
}

}  // namespace tilewright::passes
