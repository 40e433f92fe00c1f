// Programs that come as text.
#include "ir/text.h"
#include "ops/ops.h"
#include "tensor/explain.h"

#include <tilewright/tensor/program.h>

#include <fmt/format.h>

namespace tilewright {

struct Program::State {
  ir::Graph graph;
  List<Input> inputs;
};

Program::Program(std::string_view text, const Location& where) {
  auto graph = ir::parse(text, ops::all_ops());
  if (!graph) throw Error("Program: " + graph.error().message, where);
  List<Input> inputs;
  for (const ir::NodeId id : graph->inputs()) {
    const ir::Node& node = graph->node(id);
    inputs.push_back({node.name, node.type.dtype, node.type.shape});
  }
  if (inputs.empty())
    throw Error(
        fmt::format("Program: graph @{} has no inputs, so it has nothing to be called with", graph->name()),
        where);
  state_ = std::make_shared<const State>(*std::move(graph), std::move(inputs));
}

std::vector<Tensor> Program::operator()(const std::vector<Tensor>& arguments, const Location& where) const {
  const ir::Graph& graph = state_->graph;
  if (arguments.size() != state_->inputs.size())
    throw Error(fmt::format("Program: {} arguments given, graph @{} takes {}", arguments.size(), graph.name(),
                            state_->inputs.size()),
                where);
  detail::check_given("Program", {"argument"}, arguments, where);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Input& wanted = state_->inputs[i];
    if (const ir::Type& type = arguments[i].impl()->type; !(type == ir::Type{wanted.dtype, wanted.shape}))
      throw Error(fmt::format("Program: argument {} is {}, %{} of graph @{} is {}", i, to_string(type),
                              wanted.name, graph.name(), to_string(ir::Type{wanted.dtype, wanted.shape})),
                  where);
  }
  return detail::apply(
      "Program", arguments,
      [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
        return detail::inline_graph(into, graph, inputs);
      },
      where);
}

const List<Program::Input>& Program::inputs() const& { return state_->inputs; }
List<Program::Input> Program::inputs() && { return state_->inputs; }
std::string Program::text() const { return ir::print(state_->graph); }

}  // namespace tilewright
