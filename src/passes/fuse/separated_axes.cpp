#include "passes/fuse/separated_axes.h"

#include "ir/op.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <limits>
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

// Sums and products of narrow floats are rounded once, at their end.
bool is_rounded(const Node& n) {
  return (n.op == &ops::kSum || n.op == &ops::kProd) && compute_dtype(n.type.dtype) != n.type.dtype;
}

// The axes `first`, and then the others of `axes`.
Value reduced(const Node& n, Value x, const AxisList& first, const AxisList& axes) {
  Graph& graph = *x.graph;
  const bool rounded = is_rounded(n);
  if (rounded) x = ops::cast(x, compute_dtype(n.type.dtype));
  const NodeId part = graph.add(*n.op, {x.id}, {{"axes", first}});
  const Value all{&graph, graph.add(*n.op, {part}, {{"axes", axes_behind(axes, first)}})};
  return rounded ? ops::cast(all, n.type.dtype) : all;
}

class Splitter {
 public:
  Splitter(const Graph& graph, const tile::Target& target)
      : graph_(graph), users_(graph.users()), plans_(target) {}

  // The axes to reduce first; none where the reduction stays whole.
  std::optional<AxisList> first_axes(NodeId id) {
    const Node& n = graph_.node(id);
    if (n.op->kind != OpClass::reduce || !is_fold(*n.op)) return std::nullopt;
    const ir::Type& type = graph_.type(n.operands[0]);
    const AxisList& axes = n.attrs.integers("axes");
    const std::vector<AxisList> runs = runs_of(type.shape, axes);
    if (runs.size() < 2 || type.shape.size() == 0 || (is_held(type.shape, axes) && meets_again(id)))
      return std::nullopt;
    double best = whole_s(n, type) * (1 - plans_.target().prediction_error);
    std::optional<AxisList> found;
    for (const AxisList& run : runs) {
      const double seconds = parts_s(n, type, run);
      if (seconds < best) best = seconds, found = run;
    }
    return found;
  }

 private:
  bool is_held(const Shape& shape, const AxisList& axes) const {
    Index elements = 1;
    for (Index axis : axes) elements *= shape[static_cast<int>(axis)];
    return elements * 4 <= plans_.target().row_bytes;
  }

  // Whether the result meets what was reduced, as a norm's does; or what is reduced was made with such a
  // result.
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

  // What the target predicts for the kernels of everything that a graph computes from its input.
  double seconds_of(const Graph& graph) {
    GroupForms forms(graph);
    Group group;
    double seconds = 0;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& n = graph.node(id);
      if (n.op->kind == OpClass::input) continue;
      group.nodes.push_back(id);
      const bool ends = id + 1 == graph.size() || (n.op->kind == OpClass::reduce &&
                                                   graph.node(id + 1).op->kind == OpClass::reduce);
      if (!ends) continue;
      group.outputs = {id};
      const GroupPrice price = plans_.price(graph, forms, group);
      if (price.refusal != Refusal::none) return std::numeric_limits<double>::infinity();
      seconds += price.seconds;
      group = {};
    }
    return seconds;
  }

  double whole_s(const Node& n, const ir::Type& type) {
    Graph alone;
    const NodeId x = alone.add_input("x", type);
    alone.add(*n.op, {x}, n.attrs);
    return seconds_of(alone);
  }
  double parts_s(const Node& n, const ir::Type& type, const AxisList& first) {
    Graph alone;
    const NodeId x = alone.add_input("x", type);
    (void)reduced(n, {&alone, x}, first, n.attrs.integers("axes"));
    return seconds_of(alone);
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  GroupPlans plans_;
};

// Nothing where every reduction stays as it is.
std::optional<Graph> with_some_split(const Graph& graph, const tile::Target& target) {
  Splitter splitter(graph, target);
  std::vector<std::optional<AxisList>> first(static_cast<std::size_t>(graph.size()));
  bool any = false;
  const std::vector<bool> live = graph.live();
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    first[static_cast<std::size_t>(id)] = splitter.first_axes(id);
    any = any || first[static_cast<std::size_t>(id)];
  }
  if (!any) return std::nullopt;
  NodeId next = 0;  // nodes are asked for in their order, but for inputs
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
    while (&graph.node(next) != &n) ++next;
    const std::optional<AxisList>& axes = first[static_cast<std::size_t>(next)];
    return axes ? std::optional(reduced(n, x[0], *axes, n.attrs.integers("axes"))) : std::nullopt;
  });
}

}  // namespace

Graph with_separated_axes(const Graph& graph, const tile::Target& target) {
  if (target.predicted_us == nullptr || target.any_size) return graph;
  Graph out = graph;
  // What is left to reduce may lie apart as well: each round takes one run of axes from it.
  while (std::optional<Graph> split = with_some_split(out, target)) out = std::move(*split);
  return out;
}

}  // namespace tilewright::passes
