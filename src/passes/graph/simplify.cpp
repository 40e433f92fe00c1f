// Rebuilds the graph node by node, offering each to the rewrites, until nothing changes.
#include "passes/graph/simplify.h"

#include "passes/graph/simplify_parts.h"

#include <bit>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::Value;

std::optional<Number> constant_of(Value v) {
  if (!is_a(v, ops::kConstant)) return std::nullopt;
  const ir::Attrs& attrs = node_of(v).attrs;
  if (is_float(v.dtype())) return Number{.real = attrs.real("value")};
  return Number{.integer = attrs.integer("value")};
}

bool is_number(Value v, double number) {
  const auto constant = constant_of(v);
  if (!constant) return false;
  if (!is_float(v.dtype())) return constant->integer == static_cast<Index>(number);
  return std::bit_cast<std::uint64_t>(constant->real) == std::bit_cast<std::uint64_t>(number);
}

Value constant_at(Value constant, const Shape& shape) {
  const Number number = *constant_of(constant);
  if (is_float(constant.dtype())) return ops::constant(*constant.graph, constant.dtype(), shape, number.real);
  return ops::constant_int(*constant.graph, constant.dtype(), shape, number.integer);
}

namespace {

// A rewrite's replacement is built of nodes that are themselves offered in the next round; graphs settle in a
// few.
constexpr int kMaxRounds = 16;

std::optional<Value> rewrite(const Candidate& candidate) {
  for (std::span<const Rewrite> table : rewrite_tables())
    for (const Rewrite& rule : table)
      if (auto replacement = rule.apply(candidate)) return replacement;
  return std::nullopt;
}

// How many live nodes and outputs read each node.
std::vector<int> count_readers(const Graph& graph, const std::vector<bool>& live) {
  std::vector<int> count(live.size());
  const auto users = graph.users();
  for (std::size_t i = 0; i < live.size(); ++i)
    for (NodeId user : users[i]) count[i] += live[static_cast<std::size_t>(user)] ? 1 : 0;
  for (NodeId id : graph.outputs()) ++count[static_cast<std::size_t>(id)];
  return count;
}

Graph round(const Graph& old) {
  Graph fresh(old.name());
  const std::vector<bool> live = old.live();
  const std::vector<int> read = count_readers(old, live);
  std::vector<int> readers;
  std::vector<NodeId> moved(static_cast<std::size_t>(old.size()), -1);
  for (NodeId id : old.inputs()) {
    const ir::Node& node = old.node(id);
    const ir::LocationScope scope(fresh, node.location);
    moved[static_cast<std::size_t>(id)] = fresh.add_input(node.name, node.type);
  }
  for (NodeId id = 0; id < old.size(); ++id) {
    const auto at = static_cast<std::size_t>(id);
    const ir::Node& node = old.node(id);
    if (!live[at] || moved[at] >= 0) continue;
    const ir::LocationScope scope(fresh, node.location);
    std::vector<NodeId> operands;
    Candidate candidate{*node.op, {}, node.attrs, node.type, readers};
    for (NodeId operand : node.operands) {
      operands.push_back(moved[static_cast<std::size_t>(operand)]);
      candidate.x.push_back({&fresh, operands.back()});
    }
    const auto replacement = rewrite(candidate);
    if (replacement) TW_CHECK(replacement->type() == node.type, "a rewrite keeps the type");
    moved[at] = replacement ? replacement->id : fresh.add(*node.op, operands, node.attrs);
    readers.resize(static_cast<std::size_t>(fresh.size()));
    readers[static_cast<std::size_t>(moved[at])] += read[at];
  }
  std::vector<NodeId> outputs;
  for (NodeId id : old.outputs()) outputs.push_back(moved[static_cast<std::size_t>(id)]);
  fresh.set_outputs(outputs);
  return fresh;
}

}  // namespace

std::vector<std::span<const Rewrite>> rewrite_tables() {
  return {pointwise_rewrites(), view_rewrites(), pick_rewrites(), matmul_rewrites(), mask_rewrites()};
}

Graph simplify(const Graph& graph) {
  Graph before = round(graph);
  for (int i = 1; i < kMaxRounds; ++i) {
    Graph after = round(before);
    if (after == before) return after;
    before = std::move(after);
  }
  return before;
}

}  // namespace tilewright::passes
