// Kernels have no place in a graph, so a function with some is differentiated in parts. Say kernels read i_k
// and made o_k, inputs of the graph, and the function's value is L. The gradient by the arguments is that of
//   L + Σ_k <i_k, d_k>   with d_k, the gradient by i_k, held constant,
// and d_k is what the user's function makes of the gradient by o_k, which is that of L + Σ_(m > k) <i_m,
// d_m>, for only later kernels depend on o_k. So the last call comes first.
#include "tensor/kernel_gradients.h"

#include "ops/functions.h"
#include "passes/graph/differentiate.h"
#include "tensor/explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

std::vector<Tensor> values_now(const std::shared_ptr<Trace>& trace, const std::vector<Tensor>& tensors,
                               const std::shared_ptr<ContextState>& context, const std::string& what,
                               const Location& where) {
  for (const Tensor& t : std::vector<Tensor>(trace->inputs)) {
    if (t.impl()->buffer) continue;
    if (const std::shared_ptr<Trace>& outer = t.impl()->trace;
        outer && outer->of == Trace::Of::value_and_grad)
      throw Error(
          fmt::format("{} has no second derivative: its gradient is what was given for it, which is not "
                      "differentiated",
                      what),
          where);
    give_memory(*t.impl(), context, what, where);
  }
  return at_place(where, [&] {
    std::vector<Tensor> values = tensors;
    std::vector<Tensor*> computed;
    std::vector<ir::NodeId> outputs;
    for (Tensor& t : values) {
      if (const Tensor* memory = concrete(t)) {
        t = Tensor(*memory);
      } else {
        outputs.push_back(node_in(*trace, t));
        computed.push_back(&t);
      }
    }
    if (computed.empty()) return values;
    ir::Graph graph = trace->graph;
    graph.set_outputs(outputs);
    DeviceState& device = context->device(trace->device->name());
    const std::vector<Tensor> results =
        run_graph(context, device, *compile_graph(device, graph), trace->inputs);
    for (std::size_t i = 0; i < computed.size(); ++i) *computed[i] = results[i];
    return values;
  });
}

std::vector<Tensor> note_kernel(const std::shared_ptr<Trace>& trace, const std::vector<Tensor>& read,
                                KernelCall call) {
  for (const Tensor& t : read) call.read.push_back(node_in(*trace, t));
  call.first_made = trace->inputs.size();
  std::vector<Tensor> made;
  made.reserve(call.call.made.size());
  for (const Tensor& t : call.call.made)
    made.push_back(add_input(trace, t, fmt::format("made{}", trace->inputs.size())));
  trace->kernels.push_back(std::move(call));
  return made;
}

namespace {

// <value, constant> in the type of `as`: its gradient by `value` is the constant.
ir::Value inner_product(ir::Value value, ir::Value constant, ir::Value as) {
  const ir::Value product = ops::cast(value, as.dtype()) * ops::cast(constant, as.dtype());
  return ops::sum(product, {}, ops::Keep::no);
}

// What the user's function gave must be gradients of what the kernel read.
void check_gradients(const KernelCall& call, const std::vector<Tensor>& gradients) {
  const std::vector<Tensor>& read = call.call.read;
  const auto wrong = [&](const std::string& what) {
    throw Error(fmt::format("the gradient of kernel {}: {}", call.kernel, what), call.where);
  };
  if (gradients.size() != read.size())
    wrong(fmt::format("{} were returned, one for each of the {} tensors that it read is wanted",
                      gradients.size(), read.size()));
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const TensorImpl &g = *gradients[i].impl(), &x = *read[i].impl();
    if (!is_float(x.type.dtype))
      wrong(fmt::format("tensor {} that it read is {}, which has none: return a Tensor() for it", i,
                        to_string(x.type)));
    if (!(g.type == x.type) || g.device != x.device)
      wrong(fmt::format("{} is {} on {}, the tensor that it read {} on {}", i, to_string(g.type),
                        g.device->name(), to_string(x.type), x.device->name()));
  }
}

}  // namespace

ir::Graph with_kernel_gradients(const char* of, Trace& trace, const std::shared_ptr<ContextState>& context,
                                const Location& where) {
  ir::Graph graph = trace.graph;
  std::vector<ir::NodeId> outputs = graph.outputs();
  ir::Value value{&graph, outputs.at(0)};
  for (auto kernel = trace.kernels.rbegin(); kernel != trace.kernels.rend(); ++kernel) {
    TileCall call = kernel->call;
    std::vector<int> wrt;
    for (std::size_t i = 0; i < call.made.size(); ++i)
      if (is_float(call.made[i].impl()->type.dtype)) wrt.push_back(static_cast<int>(kernel->first_made + i));
    if (wrt.empty()) continue;  // nothing flows through integers
    graph.set_outputs({value.id});
    const ir::Graph joint = passes::differentiate(graph, wrt);
    std::vector<Tensor> gradients = apply(
        of, trace.inputs,
        [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
          std::vector<ir::Value> all = inline_graph(into, joint, inputs);
          return std::vector<ir::Value>(all.begin() + 1, all.end());
        },
        where);
    call.gradients.resize(call.made.size());
    for (std::size_t i = 0; i < wrt.size(); ++i)
      call.gradients[static_cast<std::size_t>(wrt[i]) - kernel->first_made] = gradients[i];
    {
      const Opened open(context->mutex);
      gradients = (*kernel->gradient)(call);
    }
    check_gradients(*kernel, gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const ir::NodeId constant =
          graph.add_input(fmt::format("gradient{}", trace.inputs.size()), gradients[i].impl()->type);
      trace.inputs.push_back(gradients[i]);
      value = value + inner_product({&graph, kernel->read[i]}, {&graph, constant}, value);
    }
  }
  outputs.insert(outputs.begin(), value.id);
  graph.set_outputs(outputs);
  return graph;
}

}  // namespace tilewright::detail
