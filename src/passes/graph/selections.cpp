// The largest of each block, the blocks that these choose, and a sort of what lies in them.
#include "passes/graph/selections.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/long_sorts.h"
#include "passes/graph/replace_nodes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

namespace tilewright::passes {

namespace {

using ir::Node;
using ir::OpClass;
using ir::Value;

// Elements of a block. Two sorts are left: of length / block largest elements, and of k blocks and what lies
// behind the last whole one. They are shortest where both are alike. None where that is no gain.
std::optional<Index> selecting_block(Index length, Index k) {
  if (k < 1) return std::nullopt;
  const double even = std::sqrt(double(length) / double(k));
  const Index block = Index{1} << std::lround(std::log2(std::max(even, 1.0)));
  constexpr Index kGain = 3;  // chosen: what is left to sort of all there is
  const bool gains = block > 1 && kGain * (length / block + (k + 1) * block) < length && k <= length / block;
  return gains ? std::optional(block) : std::nullopt;
}

Value without_end(Value x, Index axis, Index count) {
  return ops::slice_axis(x, axis, {.start = 0, .stop = count});
}

// The axis in two: so many parts, and what is in one.
Value taken_apart(Value x, Index axis, Index parts) {
  std::vector<Index> extents = x.shape().extents();
  Index& extent = extents[static_cast<std::size_t>(axis)];
  const Index each = extent / parts;
  extent = parts;
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, each);
  return ops::reshape(x, Shape(extents));
}

// What stands behind every element, of equal ones by its place.
Value least_of(Value x) {
  const DType dtype = x.dtype();
  if (is_float(dtype)) return ops::constant(*x.graph, dtype, {}, -std::numeric_limits<double>::infinity());
  const auto bits = 8 * static_cast<int>(size_bytes(dtype));
  const Index least = dtype == DType::u8 ? 0 : 2 * -(Index{1} << (bits - 2));
  return ops::constant_int(*x.graph, dtype, {}, least);
}

// i32 positions of the k largest, from the largest on.
Value positions_of_largest(Value x, Index axis, Index k) {
  const Index length = x.shape()[static_cast<int>(axis)];
  const std::optional<Index> block = selecting_block(length, k);
  if (!block) return without_end(ops::sorting_positions(x, axis, Order::descending), axis, k);
  const Index blocks = length / *block, whole = blocks * *block;
  const Value apart = taken_apart(without_end(x, axis, whole), axis, blocks);
  const Value largest = {x.graph,
                         x.graph->add(ops::kMax, {apart.id}, {{"axes", std::vector<Index>{axis + 1}}})};
  Value chosen = positions_of_largest(largest, axis, k);
  if (k > 1) chosen = ops::take_along(chosen, ops::sorting_positions(chosen, axis), axis);
  // What lies behind the last whole block is one more, which ends beyond the row.
  const bool ragged = whole < length;
  if (ragged) chosen = ops::pad_axis(chosen, axis, 0, 1, static_cast<double>(blocks));
  const Index taken = ragged ? k + 1 : k;
  std::vector<Index> extents = apart.shape().extents();
  extents[static_cast<std::size_t>(axis)] = taken;
  const Shape grid(extents);
  const Value inside = ops::cast(ops::iota(*x.graph, grid, axis + 1), DType::i32);
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
  extents[static_cast<std::size_t>(axis)] = taken * *block;
  const Value places = ops::reshape(
      ops::broadcast_to(ops::unsqueeze(chosen * *block, axis + 1), grid) + inside, Shape(extents));
  Value keys = ops::take_along(x, places, axis);
  if (ragged) keys = ops::where(ops::lt(places, length), keys, least_of(x));
  const Value order = ops::sorting_positions(keys, axis, Order::descending);
  return ops::take_along(places, without_end(order, axis, k), axis);
}

// How many places from the first on a slice takes along the axis of an argsort, and all of the other axes.
std::optional<Index> first_places(const Node& slice, const Node& sort) {
  if (slice.op->kind != OpClass::slice) return std::nullopt;
  const int axis = static_cast<int>(sort.attrs.integer("axis"));
  const auto are = [&](const char* name, Index value) {
    const std::vector<Index>& all = slice.attrs.integers(name);
    return std::all_of(all.begin(), all.end(), [&](Index each) { return each == value; });
  };
  for (int i = 0; i < sort.type.shape.rank(); ++i)
    if (i != axis && slice.type.shape[i] != sort.type.shape[i]) return std::nullopt;
  return are("start", 0) && are("step", 1) ? std::optional(slice.type.shape[axis]) : std::nullopt;
}

// The first places of each argsort that all its readers do with; of others none. A short row is sorted in a
// few microseconds, which is what the further kernels would take.
std::unordered_map<const Node*, Index> wanted_places(const ir::Graph& graph, const tile::Target& target) {
  constexpr Index kFewElements = 1 << 14;  // chosen
  std::unordered_map<const Node*, Index> wanted;
  const auto users = graph.users();
  const std::vector<bool> live = graph.live();
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (n.op->kind != OpClass::argsort || ops::order_attr(n.attrs) != Order::descending) continue;
    const std::vector<ir::NodeId>& out = graph.outputs();
    if (n.type.shape.size() < kFewElements || std::find(out.begin(), out.end(), id) != out.end()) continue;
    const Index length = n.type.shape[static_cast<int>(n.attrs.integer("axis"))];
    if (target.shares_tiles() && length <= longest_sort(target, graph.type(n.operands[0]).dtype)) continue;
    Index most = 0;
    for (const ir::NodeId user : users[static_cast<std::size_t>(id)])
      if (live[static_cast<std::size_t>(user)])
        most = std::max(most, first_places(graph.node(user), n).value_or(length));
    if (selecting_block(length, most)) wanted[&n] = most;
  }
  return wanted;
}

}  // namespace

ir::Graph with_selections(const ir::Graph& graph, const tile::Target& target) {
  const std::unordered_map<const Node*, Index> wanted = wanted_places(graph, target);
  return replace_nodes(
      graph, [&](const Node& n) { return wanted.count(&n) != 0; },
      [&](const Node& n, Value x) {
        return positions_of_largest(x, n.attrs.integer("axis"), wanted.at(&n));
      });
}

}  // namespace tilewright::passes
