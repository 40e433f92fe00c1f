// A long sort as sorts of runs, which are merged two by two.
#include "passes/graph/long_sorts.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/replace_nodes.h"

#include <tilewright/tile/kernel.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;

// Whether b stands before a though a's run is the first: equal elements keep their order.
Value comes_first(Value b, Value a, Order order) {
  if (order == Order::descending) std::swap(a, b);
  const Value less = ops::lt(b, a);
  if (!is_float(a.dtype())) return less;
  return ops::bit_or(less, ops::bit_and(ops::isnan(a), ops::logical_not(ops::isnan(b))));
}

// Elements in sorted runs along the axis, and the positions that they had.
struct Runs {
  Value keys, positions;
};

// Positions of the runs' elements, in the order of each run.
Value sorted_runs(Value x, Index axis, Index run, Order order) {
  const int at = static_cast<int>(axis);
  const Index length = x.shape()[at], runs = length / run, whole = runs * run;
  std::vector<Index> extents = x.shape().extents();
  extents[static_cast<std::size_t>(at)] = whole;
  const Shape flat(extents);
  extents[static_cast<std::size_t>(at)] = runs;
  extents.insert(extents.begin() + at + 1, run);
  const Value apart = ops::reshape(ops::slice_axis(x, axis, {.start = 0, .stop = whole}), Shape(extents));
  const Value first = ops::cast(ops::iota(*x.graph, Shape(extents), axis) * run, DType::i32);
  const Value positions = ops::reshape(ops::sorting_positions(apart, axis + 1, order) + first, flat);
  if (whole == length) return positions;
  const Value rest = ops::sorting_positions(ops::slice_axis(x, axis, {.start = whole}), axis, order);
  return ops::concat({positions, rest + whole}, axis);
}

// Pairs of runs as runs of twice the length. Of the elements before a place of the pair, `cut` is where those
// of the first run end: as many as do not stand behind the elements of the second run that make up the rest.
Runs merged(const Runs& runs, Index axis, Index run, Order order) {
  const Shape& shape = runs.keys.shape();
  const Index length = shape[static_cast<int>(axis)];
  const Value place = ops::iota(*runs.keys.graph, shape, axis);
  const Value first = ops::trunc_div(place, 2 * run) * (2 * run);
  const Value middle = ops::minimum(first + run, length), end = ops::minimum(first + 2 * run, length);
  const Value most = ops::minimum(place, middle);
  const auto key = [&](Value at) { return ops::take_along(runs.keys, at, axis); };
  Value cut = ops::maximum(place - (end - middle), first);
  for (Index step = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(run))); step > 0;
       step /= 2) {
    const Value next = cut + step;
    const Value too_far = comes_first(key(middle + place - next), key(next - 1), order);
    cut = ops::where(ops::bit_and(ops::le(next, most), ops::logical_not(too_far)), next, cut);
  }
  const Value other = middle + place - cut;
  const Value is_of_first = ops::bit_and(
      ops::lt(cut, middle),
      ops::bit_or(ops::ge(other, end), ops::logical_not(comes_first(key(other), key(cut), order))));
  const Value source = ops::where(is_of_first, cut, other);
  return {key(source), ops::take_along(runs.positions, source, axis)};
}

Value in_runs(Value x, Index axis, Order order, Index most) {
  constexpr Index kAccess = 8;  // rows begin where accesses may
  const Index length = x.shape()[static_cast<int>(axis)];
  Index runs = 1;
  while (ceil_div(length, runs) > most) runs *= 2;
  Index run = std::min(most, round_up(ceil_div(length, runs), kAccess));
  Runs all;
  all.positions = sorted_runs(x, axis, run, order);
  all.keys = ops::take_along(x, all.positions, axis);
  for (; run < length; run *= 2) all = merged(all, axis, run, order);
  return all.positions;
}

}  // namespace

// Threads that share a tile sort it in shared memory. A program of one thread walks memory by digits of the
// keys, which takes less time than a round of merging: its runs are as long as tile IR allows.
Index longest_sort(const tile::Target& target, DType key) {
  constexpr Index kSharedRun =
      4096;  // chosen: keys and places of 4 bytes take 32 KB, of which every device has more
  if (!target.shares_tiles()) return tile::kMaxTileElements;
  if (target.row_bytes == 0) return kSharedRun;  // kernels for rows of any length (tensor/size_family.cpp)
  return std::min(kSharedRun, target.held_elements(static_cast<Index>(size_bytes(key))));
}

ir::Graph with_sorts_in_runs(const ir::Graph& graph, const tile::Target& target) {
  const auto is_long = [&](const ir::Node& n) {
    return n.op->kind == OpClass::argsort && n.type.shape[static_cast<int>(n.attrs.integer("axis"))] >
                                                 longest_sort(target, graph.type(n.operands[0]).dtype);
  };
  return replace_nodes(graph, is_long, [&](const ir::Node& n, Value x) {
    return in_runs(x, n.attrs.integer("axis"), ops::order_attr(n.attrs), longest_sort(target, x.dtype()));
  });
}

}  // namespace tilewright::passes
