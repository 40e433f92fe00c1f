// Graph breaks: what a function that is being recorded does at once, because no program does it. What was
// recorded before runs first, and the function runs at every call.
#include "ir/text.h"
#include "tensor/index_check.h"
#include "tensor/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tilewright::detail {

namespace {

void check_may_break(const Trace& trace, const std::string& what, const Location& where) {
  if (!trace.no_breaks.empty())
    throw Error(fmt::format("{} inside a function {}", what, trace.no_breaks), where);
}

// Once for each line: loops and kernels that want several values break there more than once.
void report(Trace& trace, Break fresh) {
  for (Break& known : trace.breaks)
    if (known.what == fresh.what && known.location == fresh.location) {
      known.cost_ms += fresh.cost_ms;
      return;
    }
  trace.breaks.push_back(std::move(fresh));
}

// Runs what a trace has recorded so far and gives every value still alive its memory.
void flush(Trace& trace, const std::shared_ptr<ContextState>& context, DeviceState& device) {
  std::vector<std::shared_ptr<TensorImpl>> alive, computed;
  std::vector<ir::NodeId> outputs;
  std::erase_if(trace.values, [](const auto& weak) { return weak.expired(); });
  const std::vector<ir::NodeId>& inputs = trace.graph.inputs();
  for (const std::weak_ptr<TensorImpl>& weak : trace.values) {
    const std::shared_ptr<TensorImpl>& t = alive.emplace_back(weak.lock());
    if (t->buffer) continue;
    const auto input = std::find(inputs.begin(), inputs.end(), t->node);
    if (input != inputs.end()) {
      t->buffer = trace.inputs[static_cast<std::size_t>(input - inputs.begin())].impl()->buffer;
    } else {
      outputs.push_back(t->node);
      computed.push_back(t);
    }
  }
  outputs.insert(outputs.end(), trace.checked.begin(), trace.checked.end());
  const std::vector<PendingCheck> checks = std::exchange(trace.checks, {});
  std::vector<Tensor> checked;
  if (!outputs.empty()) {
    trace.graph.set_outputs(outputs);
    const auto compiled = compile_graph(device, trace.graph, trace.options);
    const std::vector<Tensor> results = run_graph(context, device, *compiled, trace.inputs, trace.options);
    for (std::size_t i = 0; i < computed.size(); ++i) computed[i]->buffer = results[i].impl()->buffer;
    checked.assign(results.begin() + static_cast<std::ptrdiff_t>(computed.size()), results.end());
    trace.pieces.push_back({ir::print(trace.graph), compiled});
  }
  for (const std::shared_ptr<TensorImpl>& t : alive) t->node = -1;
  trace.graph = ir::Graph(trace.graph.name());
  trace.inputs.clear();
  trace.checked.clear();
  trace.draws.clear();
  trace.literals = 0;
  trace.arguments = 0;
  settle(checks, checked);
}

void break_graph(const std::shared_ptr<Trace>& trace, const std::shared_ptr<ContextState>& context,
                 const std::string& what, const Location& where) {
  check_may_break(*trace, what, where);
  const auto start = std::chrono::steady_clock::now();
  // What was captured of enclosing functions must have been computed.
  for (const Tensor& t : std::vector<Tensor>(trace->inputs))
    if (!t.impl()->buffer) give_memory(*t.impl(), context, what, where);
  at_place(where, [&] { flush(*trace, context, context->device(trace->device->name())); });
  report(*trace,
         {what, location_text(where),
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
}

}  // namespace

const Tensor* concrete(const Tensor& value) {
  const Tensor* t = &value;
  while (!t->impl()->buffer) {
    const Trace& trace = *t->impl()->trace;
    const std::vector<ir::NodeId>& inputs = trace.graph.inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), t->impl()->node);
    if (at == inputs.end()) return nullptr;
    t = &trace.inputs[static_cast<std::size_t>(at - inputs.begin())];
  }
  return t;
}

void give_memory(const TensorImpl& value, const std::shared_ptr<ContextState>& context,
                 const std::string& what, const Location& where) {
  const std::shared_ptr<Trace> trace = value.trace;  // lives as long as this
  if (trace->ended) at_place(where, [&] { escaped(*trace); });
  break_graph(trace, context, what, where);
}

void note_break(Trace& trace, const std::string& what, const Location& where) {
  check_may_break(trace, what, where);
  report(trace, {what, location_text(where), 0});
}

void happens_now(ContextState& context, const std::string& what, const Location& where, const Trace* of) {
  for (std::shared_ptr<Trace> t = context.recording(); t; t = t->enclosing)
    if (t->of == Trace::Of::compile && t.get() != of) note_break(*t, what, where);
}

Aside::Aside(const std::shared_ptr<ContextState>& context, const std::string& what,
             const std::vector<Tensor>& read, const std::vector<Tensor>& written, const Location& where)
    : context_(context), recording_(context->recording()) {
  for (const std::vector<Tensor>* tensors : {&read, &written})
    for (const Tensor& t : *tensors) {
      at_place(where, [&] { check_thread(*t.impl()); });
      if (!t.impl()->buffer) give_memory(*t.impl(), context, what, where);
    }
  if (!recording_) return;
  for (std::shared_ptr<Trace> trace = recording_; trace; trace = trace->enclosing) {
    const auto changes = [&](const Tensor& input) {
      const Tensor* memory = concrete(input);
      return memory && std::any_of(written.begin(), written.end(), [&](const Tensor& w) {
               return w.impl()->buffer->overlaps(*memory->impl()->buffer);
             });
    };
    if (std::any_of(trace->inputs.begin(), trace->inputs.end(), changes))
      break_graph(trace, context, what, where);
  }
  happens_now(*context, what, where);
  context->exchange_recording(nullptr);
}

std::vector<Tensor> apart_from_recordings(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out = tensors;
  for (Tensor& t : out)
    if (const TensorImpl& impl = *t.impl(); impl.trace)
      t = make_tensor(impl.context.lock(), impl.type, impl.device, impl.buffer);
  return out;
}

}  // namespace tilewright::detail
