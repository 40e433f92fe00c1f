// Finds products with unaligned operands, asks what aligned ones would gain, and builds the graph anew.
#include "passes/fuse/aligned_rows.h"

#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/store/materialize_parts.h"
#include "passes/tiling/dot_shapes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace tilewright::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;

namespace {

// Rows that grow by more than a quarter are read and written for nothing.
constexpr Index kMostGrowth = 4;

// Elements from one row to the next, so that each begins a line of the cache; else, where that is far longer,
// so that the unit can copy it. None where nothing is to be gained.
std::optional<Index> aligned_pitch(const ir::Type& type, const tile::BlockRules& rules) {
  if (type.shape.rank() < 2) return std::nullopt;
  const Index length = type.shape[type.shape.rank() - 1], bytes = static_cast<Index>(size_bytes(type.dtype));
  for (const Index unit : {rules.line_bytes, rules.align_bytes}) {
    const Index pitch = round_up(length, std::max<Index>(unit / bytes, 1));
    if (length > 1 && (pitch - length) * kMostGrowth <= length) return pitch;
  }
  return std::nullopt;
}

NodeId add_copy(Graph& graph, NodeId of, Index pitch) {
  const Node n = graph.node(of);
  return graph.add(ops::kCast, {of}, {{"dtype", std::string(name(n.type.dtype))}, {ops::kPitch, pitch}},
                   n.location);
}

bool is_memory(const Graph& graph, NodeId id) { return !is_inlined(graph.node(id)); }

// What is read by place along each axis. The place of an extreme is counted along one loop, which rows that
// are apart may not be.
bool takes_any_rows(const Node& n) {
  if (n.op->kind == OpClass::reduce) return !tile::finds_place(*n.op->monoid);
  return n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast;
}

class Aligner {
 public:
  Aligner(const Graph& graph, GroupPlans& plans)
      : graph_(graph), plans_(plans), rules_(plans.target().matrix_units.front().blocks) {
    for (NodeId o : graph.outputs()) outputs_.insert(storage_node(graph, o));
  }

  std::optional<Graph> run() {
    const std::vector<bool> live = graph_.live();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live[static_cast<std::size_t>(id)] && graph_.node(id).op->kind == OpClass::matmul) consider(id);
    return pitches_.empty() ? std::nullopt : std::optional(rebuilt());
  }

 private:
  struct Side {
    std::size_t operand = 0;
    NodeId base = -1;  // what is copied: memory, or the part of it that is read
    Index pitch = 0;
  };

  // Copies keep the order in which memory lies; a part of it that begins within a line is copied by itself.
  NodeId base_of(NodeId operand) const {
    NodeId id = operand;
    for (; !is_memory(graph_, id); id = graph_.node(id).operands[0]) {
      const Node& n = graph_.node(id);
      if (n.operands.size() != 1) return -1;
      if (n.op->kind == OpClass::slice && !begins_lines(n)) return id;
    }
    return id;
  }
  bool begins_lines(const Node& slice) const {
    const Index bytes = static_cast<Index>(size_bytes(slice.type.dtype));
    return slice.attrs.integers("start").back() * bytes % rules_.line_bytes == 0 &&
           slice.attrs.integers("step").back() == 1;
  }

  std::vector<Side> unaligned(const Node& matmul, const LoopNest& nest) const {
    std::vector<Side> out;
    const Expr& dot = nest.exprs[static_cast<std::size_t>(nest.dot())];
    for (const std::size_t side : {0, 1}) {
      const Expr& load = nest.exprs[static_cast<std::size_t>(dot.operands[side])];
      const bool plain =
          load.kind == Expr::Kind::load && load.offset.is_affine() && load.dynamic.empty() && load.mask < 0;
      if (!plain || row_step_bytes(load) % rules_.line_bytes == 0) continue;
      const NodeId base = base_of(matmul.operands[side]);
      if (base < 0 || ops::has_pitch(graph_.node(base))) continue;
      if (const auto pitch = aligned_pitch(graph_.type(base), rules_)) out.push_back({side, base, *pitch});
    }
    return out;
  }

  double seconds_of(const Graph& graph, NodeId id) const {
    GroupForms forms(graph);
    const GroupPrice price = plans_.price(graph, forms, {{id}, {id}});
    return price.refusal == Refusal::none ? price.seconds : std::numeric_limits<double>::infinity();
  }

  double product_s(const Node& matmul, const std::vector<Side>& copied) const {
    ProductAlone product = alone(graph_, matmul.operands);
    for (const Side& s : copied) {
      const NodeId from = product.known.at(s.base);
      product.operands[s.operand] =
          view_of(product.graph, product.operands[s.operand], from, add_copy(product.graph, from, s.pitch));
    }
    const NodeId id = product.graph.add(*matmul.op, product.operands, matmul.attrs, matmul.location);
    return seconds_of(product.graph, id);
  }

  // What is computed is written one way or the other.
  double copy_s(const Side& side) const {
    if (pitches_.count(side.base)) return 0;
    const bool computed = is_memory(graph_, side.base) && graph_.node(side.base).op->kind != OpClass::input;
    if (computed && !outputs_.count(side.base)) return 0;
    ProductAlone part = alone(graph_, {side.base});
    const NodeId copy = add_copy(part.graph, part.operands[0], side.pitch);
    return seconds_of(part.graph, copy);
  }

  void consider(NodeId id) {
    const Node& matmul = graph_.node(id);
    if (matmul.type.shape.size() == 0) return;
    const auto nest = program_of(graph_, matmul, matmul.operands);
    if (!nest) return;
    const std::vector<Side> sides = unaligned(matmul, *nest);
    if (sides.empty()) return;
    std::vector<std::vector<Side>> choices{sides};
    if (sides.size() > 1) choices.insert(choices.end(), {{sides[0]}, {sides[1]}});
    const double before = product_s(matmul, {});
    double best = before * (1 - plans_.target().prediction_error);
    std::vector<Side> taken;
    for (const std::vector<Side>& choice : choices) {
      double seconds = product_s(matmul, choice);
      for (const Side& s : choice) seconds += copy_s(s);
      if (seconds < best) best = seconds, taken = choice;
    }
    for (const Side& s : taken) {
      pitches_[s.base] = s.pitch;
      read_aligned_.insert({id, s.operand});
    }
  }

  // The computed value with aligned rows that an operand is, or views through views that keep its axes; else
  // -1. Other views may reach its elements by no simple count.
  NodeId aligned_below(NodeId operand) const {
    NodeId id = operand;
    for (; !is_memory(graph_, id); id = graph_.node(id).operands[0]) {
      const Node& n = graph_.node(id);
      if (n.op->kind == OpClass::reshape || n.operands.size() != 1) return -1;
    }
    return pitches_.count(id) && graph_.node(id).op->kind != OpClass::input ? id : -1;
  }

  Graph rebuilt() const {
    Graph out(graph_.name());
    std::vector<NodeId> renamed(static_cast<std::size_t>(graph_.size()), -1);
    const auto to = [&](NodeId id) { return renamed[static_cast<std::size_t>(id)]; };
    const auto aligned = [&](NodeId operand, NodeId base) {
      return view_of(out, to(operand), to(base), add_copy(out, to(base), pitches_.at(base)));
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& n = graph_.node(id);
      if (n.op->kind == OpClass::input) {
        renamed[static_cast<std::size_t>(id)] = out.add_input(n.name, n.type);
        continue;
      }
      std::vector<NodeId> operands;
      for (std::size_t side = 0; side < n.operands.size(); ++side) {
        const NodeId o = n.operands[side];
        const NodeId base = read_aligned_.count({id, side})                                 ? base_of(o)
                            : takes_any_rows(n) && !outputs_.count(storage_node(graph_, o)) ? aligned_below(o)
                                                                                            : -1;
        operands.push_back(base >= 0 ? aligned(o, base) : to(o));
      }
      renamed[static_cast<std::size_t>(id)] = out.add(*n.op, operands, n.attrs, n.location);
    }
    std::vector<NodeId> outputs;
    for (NodeId o : graph_.outputs()) outputs.push_back(to(o));
    out.set_outputs(outputs);
    return out;
  }

  const Graph& graph_;
  GroupPlans& plans_;
  const tile::BlockRules& rules_;
  std::set<NodeId> outputs_;
  std::map<NodeId, Index> pitches_;                        // of bases that are copied
  std::set<std::pair<NodeId, std::size_t>> read_aligned_;  // products, and which operand
};

}  // namespace

std::optional<Graph> align_rows(const Graph& graph, GroupPlans& plans) {
  const tile::Target& target = plans.target();
  if (target.predicted_us == nullptr || target.matrix_units.empty() || target.any_size) return std::nullopt;
  return Aligner(graph, plans).run();
}

}  // namespace tilewright::passes
