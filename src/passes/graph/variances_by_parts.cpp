#include "passes/graph/variances_by_parts.h"

#include "ir/op.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

constexpr Index kMostOfPart =
    1 << 12;  // elements that a program of a part holds: beyond, blocks are few and slow (chosen)
constexpr Index kLeastOfPart = 1 << 8;  // below, what a part leaves is no small share of it (chosen)
constexpr Index kPartsOfUnit = 16;      // so that all units have work, and wait for memory together (chosen)
constexpr Index kFewColumns = 16;       // beside one another in a program that reduces down columns (chosen)
constexpr Index kLeastOfFew = 1 << 15;  // elements for which a second kernel is worth its launch (chosen)
constexpr std::size_t kMostSteps = 16;  // from a mean to its sum

// Σ (x - m)² over `axes`.
struct Squares {
  NodeId x = -1, distance = -1;
};

// The sum that a mean was made of by reshapes, casts and arithmetic with constants; -1: none.
NodeId sum_behind(const Graph& graph, NodeId id) {
  for (std::size_t step = 0; step < kMostSteps; ++step) {
    const Node& n = graph.node(id);
    if (n.op == &ops::kSum) return id;
    const OpClass kind = n.op->kind;
    if (kind != OpClass::pointwise && kind != OpClass::cast && kind != OpClass::reshape) return -1;
    NodeId next = -1;
    for (NodeId o : n.operands) {
      if (graph.node(o).op->kind == OpClass::constant) continue;
      if (next >= 0) return -1;
      next = o;
    }
    if (next < 0) return -1;
    id = next;
  }
  return -1;
}

std::optional<Squares> squares_of(const Graph& graph, const Node& n) {
  if (n.op != &ops::kSum || compute_dtype(n.type.dtype) != n.type.dtype || !is_float(n.type.dtype))
    return std::nullopt;
  const Node& square = graph.node(n.operands[0]);
  if (square.op != &ops::kMul || square.operands[0] != square.operands[1]) return std::nullopt;
  const Squares found{
      graph.node(square.operands[0]).operands.empty() ? -1 : graph.node(square.operands[0]).operands[0],
      square.operands[0]};
  const Node& distance = graph.node(found.distance);
  if (distance.op != &ops::kSub || graph.node(distance.operands[1]).op->kind != OpClass::expand)
    return std::nullopt;
  const NodeId mean = graph.node(distance.operands[1]).operands[0];
  const std::vector<Index>& axes = n.attrs.integers("axes");
  for (Index axis : axes)
    if (graph.type(mean).shape[static_cast<int>(axis)] != 1) return std::nullopt;
  const NodeId sum = sum_behind(graph, mean);
  if (sum < 0 || graph.node(sum).operands[0] != found.x || graph.node(sum).attrs.integers("axes") != axes)
    return std::nullopt;
  return found;
}

// How the elements that are summed are cut: axis `axis` of x, after the axes up to it have been merged from
// `first` on, is `parts` runs of `length` elements.
struct Cut {
  Index first = 0, axis = 0, parts = 1, length = 1;
};

// The last axes that are summed and adjacent are cut where a divisor fits; other summed axes only add parts.
std::optional<Cut> cut_of(const Shape& shape, const std::vector<Index>& axes, const tile::Target& target) {
  Index outer = 1, run = 1;
  Cut cut{axes.back(), axes.back()};
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const bool adjacent = outer == 1 && (axis == axes.rbegin() || *axis + 1 == cut.first);
    if (adjacent) cut.first = *axis;
    (adjacent ? run : outer) *= shape[static_cast<int>(*axis)];
  }
  const Index summed = outer * run;
  if (summed == 0) return std::nullopt;
  const Index results = shape.size() / summed;
  const bool down_columns = axes.back() + 1 != shape.rank();
  const Index beside = down_columns ? std::min(kFewColumns, shape[shape.rank() - 1]) : 1;
  const Index held = target.held_elements(4) / beside;
  const Index programs = std::max<Index>(results / beside, 1);
  const Index on_chip = held * target.max_cluster;
  const bool idle = 2 * programs * target.max_cluster <= target.units && shape.size() >= kLeastOfFew;
  if (summed <= on_chip && !idle) return std::nullopt;
  const Index even = shape.size() / (kPartsOfUnit * target.units);
  const Index wanted = std::min(held, std::clamp(even, kLeastOfPart, kMostOfPart) / beside);
  for (Index length = std::min(run, wanted); 8 * length >= wanted && length > 1; --length) {
    if (run % length != 0) continue;
    cut.length = length;
    cut.parts = run / length;
    return outer * cut.parts > 1 ? std::optional(cut) : std::nullopt;
  }
  return std::nullopt;
}

// x with the cut's axes apart: those that are summed within a part, and those that the parts are along.
struct Parts {
  Value x;
  std::vector<Index> within, along;
};

Shape cut_shape(const Shape& shape, const Cut& cut, bool is_mean) {
  std::vector<Index> extents;
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    if (axis >= cut.first && axis < cut.axis) continue;
    if (axis == cut.axis) {
      extents.push_back(is_mean ? 1 : cut.parts);
      extents.push_back(is_mean ? 1 : cut.length);
    } else {
      extents.push_back(shape[static_cast<int>(axis)]);
    }
  }
  return Shape(extents);
}

Parts apart(Value x, const std::vector<Index>& axes, const Cut& cut) {
  Parts out{ops::reshape(x, cut_shape(x.shape(), cut, false)), {cut.first + 1}, {}};
  for (Index axis : axes)
    if (axis <= cut.first || axis > cut.axis)
      out.along.push_back(axis <= cut.first ? axis : axis - cut.axis + cut.first + 1);
  return out;
}

// Sums of the parts; the parts' axes stay, those within a part are unit axes.
Value sum_of_parts(const Parts& parts) { return ops::sum(parts.x, parts.within, ops::Keep::yes); }

Value of_all_parts(Value sums, const Parts& parts) {
  std::vector<Index> axes = parts.along;
  axes.insert(axes.end(), parts.within.begin(), parts.within.end());
  std::sort(axes.begin(), axes.end());
  return ops::sum(sums, axes);
}

}  // namespace

Graph with_variances_by_parts(const Graph& graph, const tile::Target& target) {
  if (target.any_size || target.row_bytes == 0) return graph;
  // What is replaced: the sums of squares, and the sums of the same elements that the means are made of.
  std::unordered_map<const Node*, Cut> squares, sums;
  for (const Node& n : graph.nodes()) {
    const std::optional<Squares> found = squares_of(graph, n);
    if (!found) continue;
    const std::vector<Index>& axes = n.attrs.integers("axes");
    const std::optional<Cut> cut = cut_of(graph.type(found->x).shape, axes, target);
    if (!cut) continue;
    squares.insert({&n, *cut});
    for (const Node& other : graph.nodes())
      if (other.op == &ops::kSum && other.operands[0] == found->x && other.attrs.integers("axes") == axes)
        sums.insert({&other, *cut});
  }
  if (squares.empty()) return graph;
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& operands) -> std::optional<Value> {
    if (const auto sum = sums.find(&n); sum != sums.end()) {
      const Parts parts = apart(operands[0], n.attrs.integers("axes"), sum->second);
      return of_all_parts(sum_of_parts(parts), parts);
    }
    const auto found = squares.find(&n);
    if (found == squares.end()) return std::nullopt;
    const Cut& cut = found->second;
    const Value distance = operand_of(operands[0]), x = operand_of(distance),
                mean = operand_of(operand_of(distance, 1));
    const Parts parts = apart(x, n.attrs.integers("axes"), cut);
    const auto length = static_cast<double>(cut.length);
    const Value sums_of_parts = sum_of_parts(parts);
    const Value off = parts.x - ops::broadcast_to(sums_of_parts * (1.0 / length), parts.x.shape());
    const Value own = ops::sum(off * off, parts.within, ops::Keep::yes);
    // What follows is of another kernel, which waits for the mean of all, and begins with the parts' sums: a
    // value that both kernels compute would be one, and of one of them.
    const Value shifted = ops::reshape(mean * length, cut_shape(mean.shape(), cut, true));
    const Value apart_by = sums_of_parts - ops::broadcast_to(shifted, sums_of_parts.shape());
    const Value weighed =
        apart_by * (1.0 / std::sqrt(length));  // before it is squared: its square may have no room
    return of_all_parts(own, parts) + of_all_parts(weighed * weighed, parts);
  });
}

}  // namespace tilewright::passes
