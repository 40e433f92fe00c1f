// Orders in which runs of neighbouring axes are reduced, and the one that is predicted to be fastest.
#include "passes/fuse/separated_axes.h"

#include "ir/op.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;
using AxisList = std::vector<Index>;

bool has(const AxisList& axes, Index axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// The reduced axes longer than 1, neighbours together.
std::vector<AxisList> runs_of(const Shape& shape, const AxisList& axes) {
  std::vector<AxisList> runs;
  bool apart = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (!has(axes, axis)) {
      apart = true;
      continue;
    }
    if (apart) runs.emplace_back();
    runs.back().push_back(axis);
    apart = false;
  }
  return runs;
}

// The axes that are left to reduce behind `first`, as the first result numbers them.
AxisList axes_behind(const AxisList& axes, const AxisList& first) {
  AxisList rest;
  for (Index axis : axes)
    if (!has(first, axis))
      rest.push_back(axis - std::count_if(first.begin(), first.end(), [&](Index f) { return f < axis; }));
  return rest;
}

Shape without(const Shape& shape, const AxisList& axes) {
  std::vector<Index> extents;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!has(axes, axis)) extents.push_back(shape[axis]);
  return Shape(extents);
}

// Sums and products of narrow floats are rounded once, at their end.
bool is_rounded(const Node& n) {
  return (n.op == &ops::kSum || n.op == &ops::kProd) && compute_dtype(n.type.dtype) != n.type.dtype;
}

// One reduction after another, each over the next of `steps`, whose axes its operand numbers.
Value reduced(const Node& n, Value x, const std::vector<AxisList>& steps) {
  Graph& graph = *x.graph;
  const bool rounded = is_rounded(n);
  if (rounded) x = ops::cast(x, compute_dtype(n.type.dtype));
  for (const AxisList& axes : steps) x.id = graph.add(*n.op, {x.id}, {{"axes", axes}});
  return rounded ? ops::cast(x, n.type.dtype) : x;
}

class ReductionSplitter {
 public:
  ReductionSplitter(const Graph& graph, const tile::Target& target)
      : graph_(graph), users_(graph.users()), plans_(target) {}

  // The axes of each reduction that one becomes; none where it stays whole.
  std::optional<std::vector<AxisList>> steps_of(NodeId id) {
    const Node& n = graph_.node(id);
    if (n.op->kind != OpClass::reduce || !is_fold(*n.op)) return std::nullopt;
    const ir::Type& type = graph_.type(n.operands[0]);
    const AxisList& axes = n.attrs.integers("axes");
    if (runs_of(type.shape, axes).size() < 2 || type.shape.size() == 0 ||
        (is_held(type.shape, axes) && meets_again(id)))
      return std::nullopt;
    const double whole = seconds_of(n, type, axes, type.dtype);
    const Order best = best_order(n, type, axes, is_rounded(n) ? compute_dtype(n.type.dtype) : type.dtype);
    if (best.seconds >= whole * (1 - plans_.target().prediction_error)) return std::nullopt;
    return best.steps;
  }

 private:
  bool is_held(const Shape& shape, const AxisList& axes) const {
    Index elements = 1;
    for (Index axis : axes) elements *= shape[static_cast<int>(axis)];
    return elements * 4 <= plans_.target().row_bytes;
  }

  // Whether a later node reads both the reduction's result and what was reduced, as a norm does; or what is
  // reduced was itself made with the result of another reduction. One kernel then holds it for both uses.
  bool meets_again(NodeId reduction) const {
    std::vector<bool> follows(static_cast<std::size_t>(graph_.size()), false), seen = follows;
    follows[static_cast<std::size_t>(reduction)] = true;
    for (NodeId id = reduction + 1; id < graph_.size(); ++id)
      follows[static_cast<std::size_t>(id)] =
          std::any_of(graph_.node(id).operands.begin(), graph_.node(id).operands.end(),
                      [&](NodeId o) { return follows[static_cast<std::size_t>(o)]; });
    std::vector<std::pair<NodeId, bool>> left{{graph_.node(reduction).operands[0], false}};  // stretched?
    while (!left.empty()) {
      const auto [id, stretched] = left.back();
      left.pop_back();
      if (seen[static_cast<std::size_t>(id)]) continue;
      seen[static_cast<std::size_t>(id)] = true;
      const Node& n = graph_.node(id);
      if (n.op->kind == OpClass::reduce && stretched) return true;
      if (n.op->kind == OpClass::constant) continue;
      for (NodeId user : users_[static_cast<std::size_t>(id)])
        if (user != reduction && follows[static_cast<std::size_t>(user)]) return true;
      const bool computed = n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast ||
                            n.op->kind == OpClass::reshape || n.op->kind == OpClass::expand;
      if (!computed) continue;
      for (NodeId o : n.operands) left.emplace_back(o, stretched || n.op->kind == OpClass::expand);
    }
    return false;
  }

  struct Order {
    double seconds = std::numeric_limits<double>::infinity();
    std::vector<AxisList> steps;
  };

  // A run of neighbouring axes first, then the best order of the others; in `dtype`.
  Order best_order(const Node& n, const ir::Type& type, const AxisList& axes, DType dtype) {
    const std::vector<AxisList> runs = runs_of(type.shape, axes);
    Order best;
    if (runs.size() < 2) return {seconds_of(n, type, axes, dtype), {axes}};
    for (const AxisList& run : runs) {
      const double first = seconds_of(n, type, run, dtype);
      if (first >= best.seconds) continue;
      Order rest = best_order(n, {dtype, without(type.shape, run)}, axes_behind(axes, run), dtype);
      if (first + rest.seconds >= best.seconds) continue;
      best = {first + rest.seconds, std::move(rest.steps)};
      best.steps.insert(best.steps.begin(), run);
    }
    return best;
  }

  // Predicted for the kernels that reduce a tensor in memory, in `dtype`.
  double seconds_of(const Node& n, const ir::Type& type, const AxisList& axes, DType dtype) {
    Graph alone;
    const Value x{&alone, alone.add_input("x", type)}, wide = ops::cast(x, dtype);
    const NodeId result = alone.add(*n.op, {wide.id}, {{"axes", axes}});
    Group group{.nodes = {result}, .outputs = {result}};
    if (wide.id != x.id) group.nodes = {wide.id, result};
    GroupForms forms(alone);
    const GroupPrice price = plans_.price(alone, forms, group);
    return price.refusal == Refusal::none ? price.seconds : std::numeric_limits<double>::infinity();
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  GroupPlans plans_;
};

}  // namespace

Graph with_separated_axes(const Graph& graph, const tile::Target& target) {
  if (target.predicted_us == nullptr || target.any_size) return graph;
  ReductionSplitter splitter(graph, target);
  std::map<const Node*, std::vector<AxisList>> split;
  const std::vector<bool> live = graph.live();
  for (NodeId id = 0; id < graph.size(); ++id)
    if (live[static_cast<std::size_t>(id)])
      if (auto steps = splitter.steps_of(id)) split.emplace(&graph.node(id), std::move(*steps));
  if (split.empty()) return graph;
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
    const auto found = split.find(&n);
    return found == split.end() ? std::nullopt : std::optional(reduced(n, x[0], found->second));
  });
}

}  // namespace tilewright::passes
