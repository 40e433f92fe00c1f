// Scatters as reductions, or as sums of runs of sorted indices.
#include "passes/graph/fixed_order.h"

#include "ir/op.h"
#include "ops/functions.h"
#include "passes/graph/replace_nodes.h"

#include <bit>
#include <cstdint>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;

bool adds_floats_by_index(const ir::Node& n) {
  return (n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along) &&
         is_float(n.type.dtype);
}

// result (A, V, B) = Σₙ where(index[n] == v, update (A, n, B), 0); of scatter_add_along the index is (A, n,
// B), too.
Value as_reduction(const ir::Node& scatter, Value index, Value update) {
  const Index axis = scatter.attrs.integer("axis");
  const std::vector<Index>& result = scatter.type.shape.extents();
  const bool along = scatter.op->kind == OpClass::scatter_add_along;
  const Index count = along ? index.shape()[static_cast<int>(axis)] : index.shape().size();
  // (A, places, count, B), or (1, places, count, 1).
  const auto shape = [&](Index places, Index counted, bool whole) {
    std::vector<Index> extents = whole ? result : std::vector<Index>(result.size(), 1);
    extents[static_cast<std::size_t>(axis)] = places;
    extents.insert(extents.begin() + axis + 1, counted);
    return Shape(extents);
  };
  const Value meant = ops::cast(ops::reshape(index, shape(1, count, along)), DType::i64);
  const Value place = ops::iota(*index.graph, shape(result[static_cast<std::size_t>(axis)], 1, false), axis);
  const Value terms = ops::where(ops::eq(meant, place), ops::reshape(update, shape(1, count, true)), 0.0);
  return ops::cast(ops::sum(terms, {axis + 1}) + 0.0, scatter.type.dtype);
}

// Places beside which comparing each with every index takes longer than sorting. A round reads and writes
// each element once; a comparison with an addition takes a thirtieth of that, by the rates of a machine whose
// memory is fast beside its arithmetic. Estimated, not measured.
bool compares_too_often(Index places, Index count) {
  constexpr Index kPlacesOfRound = 32;
  return places > kPlacesOfRound * static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(count)));
}

// For each of `places` numbers 0, 1, … how many of the sorted ones are less: by halves of what is left.
Value counts_below(Value sorted, Index places) {
  const Index count = sorted.shape()[0];
  const Value number = ops::iota(*sorted.graph, {places}, 0);
  Value below = number * Index{0};
  for (auto step = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(count))); step > 0;
       step /= 2) {
    const Value further = below + step;
    const Value last = ops::take(sorted, further - 1, 0);
    below = ops::where(ops::logical_and(ops::le(further, count), ops::lt(last, number)), further, below);
  }
  return below;
}

// The same sums in a number of rounds that grows with the logarithm of the indices' number. They are sorted
// with what is meant for them. Before round d = 1, 2, 4, … an element has the sum of d elements of its run,
// from its own on; it adds that of the element d further on, if that one belongs to the run. At the end the
// first of a run has the run's sum, and each place of the result takes it from there.
Value as_sums_of_runs(const ir::Node& scatter, Value index, Value update) {
  const Index axis = scatter.attrs.integer("axis"), count = index.shape().size();
  std::vector<Index> extents = scatter.type.shape.extents();
  const Index places = extents[static_cast<std::size_t>(axis)];
  extents[static_cast<std::size_t>(axis)] = count;
  const Value flat = ops::cast(ops::reshape(index, {count}), DType::i64), order = ops::argsort(flat);
  const Value sorted = ops::take(flat, order, 0);
  Value sums = ops::take(ops::reshape(update, Shape(extents)), order, axis);
  if (size_bytes(sums.dtype()) < size_bytes(DType::f32)) sums = ops::cast(sums, DType::f32);
  const auto along_axis = [&](Value v) {
    std::vector<Index> shape(extents.size(), 1);
    shape[static_cast<std::size_t>(axis)] = v.shape()[0];
    return ops::reshape(v, Shape(shape));
  };
  for (Index d = 1; d < count; d *= 2) {
    const Value same =
        ops::eq(ops::slice_axis(sorted, 0, {.start = d}), ops::slice_axis(sorted, 0, {.stop = count - d}));
    const Value behind = ops::where(along_axis(same), ops::slice_axis(sums, axis, {.start = d}), 0.0);
    sums = sums + ops::pad_axis(behind, axis, 0, d);
  }
  const Value first = counts_below(sorted, places);
  const Value number = ops::iota(*index.graph, {places}, 0);
  const Value is_there =
      ops::logical_and(ops::lt(first, count), ops::eq(ops::take(sorted, first, 0), number));
  // A sum of -0 alone is 0, as everything is added to 0.
  const Value added = ops::where(along_axis(is_there), ops::take(sums, first, axis), 0.0) + 0.0;
  return ops::cast(added, scatter.type.dtype);
}

Value in_one_order(const ir::Node& scatter, Value index, Value update) {
  const Index places = scatter.type.shape[static_cast<int>(scatter.attrs.integer("axis"))];
  const bool by_runs = scatter.op->kind == OpClass::scatter_add && index.shape().size() > 1 &&
                       compares_too_often(places, index.shape().size());
  return by_runs ? as_sums_of_runs(scatter, index, update) : as_reduction(scatter, index, update);
}

}  // namespace

ir::Graph in_fixed_order(const ir::Graph& graph) {
  return replace_nodes(graph, [](const ir::Node& n, const std::vector<Value>& operands) {
    return adds_floats_by_index(n) ? std::optional(in_one_order(n, operands[0], operands[1])) : std::nullopt;
  });
}

}  // namespace tilewright::passes
