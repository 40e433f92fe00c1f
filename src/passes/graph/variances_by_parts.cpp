// Counts, means and squares of parts of a row, and the formula that joins them.
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
constexpr Index kMostUneven = 8;        // times shorter than it should be, for want of a divisor (chosen)
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

// How many elements of each axis of x are in a part: all of an axis that is not summed.
using PartShape = std::vector<Index>;

// The largest divisor of `extent` that is at most `most`.
Index divisor(Index extent, Index most) {
  Index d = std::min(extent, most);
  while (d > 1 && extent % d != 0) --d;
  return std::max<Index>(d, 1);
}

// Summed axes from the last on, as much of them as a program holds; nullopt where parts are not worth it.
// `is_all`: nothing else is made of the distances; a kernel that writes what is would read x once more.
std::optional<PartShape> part_of(const Shape& shape, const std::vector<Index>& axes, bool is_all,
                                 const tile::Target& target) {
  Index summed = 1;
  for (Index axis : axes) summed *= shape[static_cast<int>(axis)];
  if (summed == 0) return std::nullopt;
  const bool down_columns = axes.back() + 1 != shape.rank();
  const Index beside = down_columns ? std::min(kFewColumns, shape[shape.rank() - 1]) : 1;
  const Index held = target.held_elements(4) / beside;
  const Index programs = std::max<Index>(shape.size() / summed / beside, 1);
  const bool idle =
      is_all && 2 * programs * target.max_cluster <= target.units && shape.size() >= kLeastOfFew;
  if (summed <= held * target.max_cluster && !idle) return std::nullopt;
  const Index even = shape.size() / (kPartsOfUnit * target.units);
  const Index wanted = std::min(held, std::clamp(even, kLeastOfPart, kMostOfPart) / beside);
  PartShape part(shape.begin(), shape.end());
  Index length = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    Index& extent = part[static_cast<std::size_t>(*axis)];
    extent = divisor(extent, std::max<Index>(wanted / length, 1));
    length *= extent;
  }
  return length < summed && length > 1 && kMostUneven * length >= wanted ? std::optional(part) : std::nullopt;
}

bool is_cut(Index within, Index extent) { return within > 1 && within < extent; }

// x's shape in which a summed axis that is cut is two: parts, and elements of one.
Shape apart_shape(const Shape& shape, const PartShape& part) {
  std::vector<Index> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Index within = part[static_cast<std::size_t>(axis)];
    const bool cut = is_cut(within, shape[axis]);
    extents.push_back(cut ? shape[axis] / within : shape[axis]);
    if (cut) extents.push_back(within);
  }
  return Shape(extents);
}

// x with summed axes that are cut in two: the axes that are summed within a part, and those that the parts
// are along.
struct Parts {
  Value x;
  std::vector<Index> within, along;
};

Parts apart(Value x, const std::vector<Index>& axes, const PartShape& part) {
  const Shape& shape = x.shape();
  Parts out{ops::reshape(x, apart_shape(shape, part)), {}, {}};
  Index more = 0;  // axes that those before were cut into
  for (Index axis : axes) {
    const Index within = part[static_cast<std::size_t>(axis)], extent = shape[static_cast<int>(axis)];
    const bool cut = is_cut(within, extent);
    if (cut || within == 1) out.along.push_back(axis + more);
    if (cut) ++more;
    if (cut || within > 1) out.within.push_back(axis + more);
  }
  return out;
}

// A sum of each part; the axes along which parts lie in these; and the sum of such sums.
Value sum_of_parts(Value x, const Parts& parts) { return ops::sum(x, parts.within); }
std::vector<Index> along_sums(const Parts& parts) {
  std::vector<Index> along = parts.along;
  for (Index& axis : along)
    axis -= std::count_if(parts.within.begin(), parts.within.end(), [&](Index w) { return w < axis; });
  return along;
}
Value of_all_parts(Value sums, const Parts& parts) { return ops::sum(sums, along_sums(parts)); }

// The shape of numbers for all parts of an element that is left, where those of the parts have `shape`.
Shape shape_beside(const Shape& shape, const Parts& parts) {
  std::vector<Index> extents(shape.begin(), shape.end());
  for (Index axis : along_sums(parts)) extents[static_cast<std::size_t>(axis)] = 1;
  return Shape(extents);
}

// Numbers for the parts beside their elements.
Value beside_elements(Value numbers, const Parts& parts) {
  std::vector<Index> extents(parts.x.shape().begin(), parts.x.shape().end());
  for (Index axis : parts.within) extents[static_cast<std::size_t>(axis)] = 1;
  return ops::broadcast_to(ops::reshape(numbers, Shape(extents)), parts.x.shape());
}

}  // namespace

Graph with_variances_by_parts(const Graph& graph, const tile::Target& target) {
  if (target.any_size || target.row_bytes == 0) return graph;
  // What is replaced: the sums of squares, and the sums of the same elements that the means are made of.
  std::unordered_map<const Node*, PartShape> squares, sums;
  const std::vector<std::vector<NodeId>> users = graph.users();
  const std::vector<NodeId>& outputs = graph.outputs();
  for (const Node& n : graph.nodes()) {
    const std::optional<Squares> found = squares_of(graph, n);
    if (!found) continue;
    const std::vector<Index>& axes = n.attrs.integers("axes");
    const bool is_all = users[static_cast<std::size_t>(found->distance)].size() == 1 &&
                        std::find(outputs.begin(), outputs.end(), found->distance) == outputs.end();
    const std::optional<PartShape> part = part_of(graph.type(found->x).shape, axes, is_all, target);
    if (!part) continue;
    squares.insert({&n, *part});
    for (const NodeId user : users[static_cast<std::size_t>(found->x)])
      if (const Node& other = graph.node(user);
          other.op == &ops::kSum && other.attrs.integers("axes") == axes)
        sums.insert({&other, *part});
  }
  if (squares.empty()) return graph;
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& operands) -> std::optional<Value> {
    if (const auto sum = sums.find(&n); sum != sums.end()) {
      const Parts parts = apart(operands[0], n.attrs.integers("axes"), sum->second);
      return of_all_parts(sum_of_parts(parts.x, parts), parts);
    }
    const auto found = squares.find(&n);
    if (found == squares.end()) return std::nullopt;
    const PartShape& part = found->second;
    const std::vector<Index>& axes = n.attrs.integers("axes");
    const Value distance = operand_of(operands[0]), x = operand_of(distance),
                mean = operand_of(operand_of(distance, 1));
    const Parts parts = apart(x, axes, part);
    double length = 1;
    for (Index axis : axes) length *= static_cast<double>(part[static_cast<std::size_t>(axis)]);
    const Value sums_of_parts = sum_of_parts(parts.x, parts);
    const Value off = parts.x - beside_elements(sums_of_parts * (1.0 / length), parts);
    const Value own = sum_of_parts(off * off, parts);
    // What follows is of another kernel, which waits for the mean of all, and begins with the parts' sums: a
    // value that both kernels compute would be one, and of one of them.
    const Value shifted = ops::reshape(mean * length, shape_beside(sums_of_parts.shape(), parts));
    const Value apart_by = sums_of_parts - ops::broadcast_to(shifted, sums_of_parts.shape());
    const Value weighed =
        apart_by * (1.0 / std::sqrt(length));  // before it is squared: its square may have no room
    return of_all_parts(own, parts) + of_all_parts(weighed * weighed, parts);
  });
}

}  // namespace tilewright::passes
