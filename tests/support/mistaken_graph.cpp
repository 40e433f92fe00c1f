// The graph written once more.
#include "support/mistaken_graph.h"

namespace tilewright::test {

ir::Graph mistaken(const ir::Graph& graph, const std::function<const ir::Op*(ir::NodeId)>& op_of) {
  ir::Graph out(graph.name());
  std::vector<ir::NodeId> renamed;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    std::vector<ir::NodeId> operands;
    operands.reserve(n.operands.size());
    for (ir::NodeId o : n.operands) operands.push_back(renamed[static_cast<std::size_t>(o)]);
    renamed.push_back(n.op->kind == ir::OpClass::input ? out.add_input(n.name, n.type)
                                                       : out.add(*op_of(id), operands, n.attrs));
  }
  std::vector<ir::NodeId> outputs;
  for (ir::NodeId o : graph.outputs()) outputs.push_back(renamed[static_cast<std::size_t>(o)]);
  out.set_outputs(outputs);
  return out;
}

}  // namespace tilewright::test
