// The op is lowered as for any device, and its kernel interpreted with bounds.
#include "support/lowering_bounds.h"

#include "backends/reference/interpreter.h"
#include "ops/rows.h"
#include "passes/pipeline.h"
#include "runtime/device.h"
#include "support/open_device.h"
#include "support/run_graph.h"

#include <tilewright/base/error.h>

#include <memory>
#include <string>

namespace tilewright::test {

namespace {

// The graph with its output as f64, which stores whatever was computed: what a narrow store rounds is no part
// of the bound.
ir::Graph with_wide_output(ir::Graph graph) {
  const ir::NodeId output = graph.outputs()[0];
  if (is_float(graph.type(output).dtype))
    graph.set_outputs({graph.add(ops::kCast, {output}, {{"dtype", std::string(name(DType::f64))}})});
  return graph;
}

}  // namespace

std::vector<double> lowering_bounds(const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
  const auto device = open_device("reference");
  const passes::Compiled compiled =
      passes::run_pipeline(with_wide_output(graph), device->target(), {.simplify = false});
  const tile::Plan& plan = compiled.plan;
  if (plan.steps.empty()) return {};  // no elements
  TW_CHECK(plan.steps.size() == 1 && plan.steps[0].kind == tile::PlanStep::Kind::launch,
           "a pointwise op is one kernel");
  std::vector<std::shared_ptr<runtime::Buffer>> memory;
  for (const tile::PlanBuffer& buffer : plan.buffers) {
    const auto bytes = static_cast<std::size_t>(buffer.elements) * size_bytes(buffer.dtype);
    memory.push_back(runtime::Buffer::allocate(device, bytes).value());
    if (buffer.role != tile::PlanBuffer::Role::input) continue;
    (void)memory.back()->write(pack(inputs[static_cast<std::size_t>(buffer.position)]).data(), bytes).value();
  }
  const tile::PlanStep& step = plan.steps[0];
  std::vector<reference::ViewBinding> bindings;
  for (const tile::ViewBinding& view : step.views) {
    const tile::PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(view.buffer)];
    const auto size = static_cast<Index>(size_bytes(buffer.dtype));
    bindings.push_back({.data = static_cast<char*>(memory[static_cast<std::size_t>(view.buffer)]->data()) +
                                view.offset * size,
                        .extent_bytes = (buffer.elements - view.offset) * size,
                        .before_bytes = view.offset * size});
  }
  const tile::Kernel& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
  const auto bounds = reference::run_with_bounds(kernel, bindings, step.scalars).value();
  for (const std::vector<double>& written : bounds.views)
    if (!written.empty()) return written;
  TW_CHECK(false, "a kernel writes its output");
}

}  // namespace tilewright::test
