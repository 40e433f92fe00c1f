// Graphs written once more without a part of them.
#include "support/cut_graph.h"

#include "ir/op.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::test {

namespace {

std::size_t at(ir::NodeId id) { return static_cast<std::size_t>(id); }

// What `outputs` need of the graph, `replaced` (or none: -1) being an input.
ir::Graph cut(const ir::Graph& graph, const std::vector<ir::NodeId>& outputs, ir::NodeId replaced) {
  std::vector<bool> needed(at(graph.size()));
  for (ir::NodeId o : outputs) needed[at(o)] = true;
  for (ir::NodeId id = graph.size(); id-- > 0;) {
    if (!needed[at(id)] || id == replaced) continue;
    for (ir::NodeId o : graph.node(id).operands) needed[at(o)] = true;
  }
  ir::Graph out(graph.name());
  std::vector<ir::NodeId> renamed(needed.size(), -1);
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (!needed[at(id)]) continue;
    const ir::Node& n = graph.node(id);
    const std::string name = fmt::format("x{}", out.inputs().size());
    if (id == replaced || n.op->kind == ir::OpClass::input) {
      renamed[at(id)] = out.add_input(name, n.type);
      continue;
    }
    std::vector<ir::NodeId> operands;
    operands.reserve(n.operands.size());
    for (ir::NodeId o : n.operands) operands.push_back(renamed[at(o)]);
    renamed[at(id)] = out.add(*n.op, operands, n.attrs);
  }
  std::vector<ir::NodeId> results;
  results.reserve(outputs.size());
  for (ir::NodeId o : outputs) results.push_back(renamed[at(o)]);
  out.set_outputs(results);
  return out;
}

}  // namespace

std::vector<ir::Graph> cuts(const ir::Graph& graph) {
  std::vector<ir::Graph> out;
  std::vector<ir::NodeId> computed;
  const std::vector<bool> live = graph.live();
  for (ir::NodeId id = 0; id < graph.size(); ++id)
    if (live[at(id)] && graph.node(id).op->kind != ir::OpClass::input) computed.push_back(id);
  const bool is_whole = computed.empty() || graph.outputs() == std::vector<ir::NodeId>{computed.back()};
  for (ir::NodeId id : computed)
    if (!is_whole || id != computed.back()) out.push_back(cut(graph, {id}, -1));
  std::reverse(computed.begin(), computed.end());
  for (ir::NodeId id : computed) {
    const auto& outputs = graph.outputs();
    const bool is_output = std::find(outputs.begin(), outputs.end(), id) != outputs.end();
    if (!is_output && !graph.node(id).operands.empty()) out.push_back(cut(graph, outputs, id));
  }
  return out;
}

}  // namespace tilewright::test
