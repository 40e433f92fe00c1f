// Recording: which trace an operation belongs to, and what becomes its inputs.
#include "tensor/trace.h"

#include "tensor/explain.h"
#include "tensor/index_check.h"

#include <tilewright/base/philox.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

// Values of `outer` are inputs of `inner`.
bool encloses(const Trace& outer, const Trace& inner) {
  for (const Trace* t = inner.enclosing.get(); t; t = t->enclosing.get())
    if (t == &outer) return true;
  return false;
}

std::string_view name(Trace::Of of) {
  switch (of) {
    case Trace::Of::compile:
      return "a compiled function";
    case Trace::Of::value_and_grad:
      return "a function of value_and_grad";
    case Trace::Of::composite:
      break;
  }
  return "a function written in others";
}

// A value that is only recorded, in a function that is running no more.
bool is_escaped(const TensorImpl& t) { return !t.buffer && t.trace && t.trace->ended; }

}  // namespace

void escaped(const Trace& from) {
  throw Error(fmt::format(
      "a tensor that was recorded inside {} (called at {}) was used after that had returned: only "
      "what a function returns has a value outside",
      name(from.of), location_text(from.where)));
}

void check_thread(const TensorImpl& t) {
  if (!t.trace || t.trace->ended || t.trace->thread == std::this_thread::get_id()) return;
  throw Error(fmt::format(
      "a tensor that is recorded inside {} (called at {}) was used on another thread: it belongs to the "
      "thread that runs the function. Use it there, and give other threads tensors that have memory",
      name(t.trace->of), location_text(t.trace->where)));
}

Tensor add_input(const std::shared_ptr<Trace>& trace, const Tensor& concrete, const std::string& name) {
  const TensorImpl& from = *concrete.impl();
  Tensor t = make_tensor(from.context.lock(), from.type, from.device, nullptr);
  t.impl()->trace = trace;
  t.impl()->node = trace->graph.add_input(name, from.type);
  trace->inputs.push_back(concrete);
  trace->values.push_back(t.shared_impl());
  return t;
}

Recorded record_function(const RecordedFunction& function, const std::vector<Tensor>& arguments,
                         const std::vector<ir::Type>& types, std::shared_ptr<Trace> trace,
                         const std::shared_ptr<ContextState>& context) {
  Recorded out{std::move(trace), {}, {}};
  std::vector<Tensor> stand_ins;
  stand_ins.reserve(arguments.size());
  // Each argument is an input of its own, even when a tensor is given twice, or captured as well.
  out.trace->arguments = arguments.size();
  out.trace->device = arguments[0].impl()->device;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Tensor t = make_tensor(context, types[i], arguments[i].impl()->device, nullptr);
    t.impl()->trace = out.trace;
    t.impl()->node = out.trace->graph.add_input(fmt::format("a{}", i), types[i]);
    out.trace->inputs.push_back(arguments[i]);
    out.trace->values.push_back(t.shared_impl());
    stand_ins.push_back(std::move(t));
  }
  const Recording recording(*context, out.trace);
  Leaves results = function(stand_ins);
  out.results = std::move(results.tensors);
  out.structure = std::move(results.structure);
  return out;
}

void finish(Recorded& recorded) {
  std::vector<ir::NodeId> outputs;
  outputs.reserve(recorded.results.size() + recorded.trace->checked.size());
  for (const Tensor& r : recorded.results) outputs.push_back(node_in(*recorded.trace, r));
  const std::vector<ir::NodeId>& checked = recorded.trace->checked;
  outputs.insert(outputs.end(), checked.begin(), checked.end());
  recorded.trace->graph.set_outputs(outputs);
}

bool is_recorded(const Tensor& t) {
  const std::shared_ptr<Trace>& trace = t.impl()->trace;
  return trace && !(trace->ended && t.impl()->buffer);
}

std::shared_ptr<Trace> trace_of(const std::vector<Tensor>& operands) {
  std::shared_ptr<Trace> innermost;
  for (const Tensor& t : operands) {
    const std::shared_ptr<Trace>& trace = t.impl()->trace;
    check_thread(*t.impl());
    if (is_escaped(*t.impl())) escaped(*trace);
    if (!is_recorded(t)) continue;
    if (!innermost || encloses(*innermost, *trace)) innermost = trace;
  }
  return innermost;
}

std::shared_ptr<Trace> recording_trace(const ContextState& context, const std::vector<Tensor>& operands) {
  if (std::shared_ptr<Trace> trace = trace_of(operands)) return trace;
  return creation_trace(context, *operands[0].impl()->device);
}

std::shared_ptr<Trace> creation_trace(const ContextState& context, const runtime::Device& device) {
  std::shared_ptr<Trace> trace = outermost_compile(context);
  return trace && trace->device.get() == &device ? trace : nullptr;
}

ir::NodeId node_in(Trace& trace, const Tensor& t) {
  TensorImpl& impl = *t.impl();
  if (impl.trace.get() == &trace && impl.node >= 0) return impl.node;
  check_thread(impl);
  if (!impl.buffer && !encloses(*impl.trace, trace)) escaped(*impl.trace);
  for (std::size_t i = trace.arguments; i < trace.inputs.size(); ++i)
    if (trace.inputs[i].impl() == t.impl()) return trace.graph.inputs()[i];
  trace.inputs.push_back(t);
  const ir::NodeId node = trace.graph.add_input(fmt::format("a{}", trace.inputs.size() - 1), impl.type);
  if (impl.trace.get() == &trace) impl.node = node;
  return node;
}

std::vector<Tensor> record(const std::shared_ptr<ContextState>& context, const std::shared_ptr<Trace>& trace,
                           const std::vector<Tensor>& operands, const GraphFunction& write,
                           const Location& where) {
  // Lines of a composite's body are none of the user's.
  const bool of_body = trace->of == Trace::Of::composite;
  const ir::LocationScope scope(trace->graph, location_text(of_body ? trace->where : where));
  std::vector<ir::Value> values;
  values.reserve(operands.size());
  for (const Tensor& t : operands) values.push_back({&trace->graph, node_in(*trace, t)});
  const std::shared_ptr<runtime::Device>& device =
      operands.empty() ? trace->device : operands[0].impl()->device;
  std::vector<Tensor> out;
  for (const ir::Value& v : write(trace->graph, values)) {
    Tensor t = make_tensor(context, v.type(), device, nullptr);
    t.impl()->trace = trace;
    t.impl()->node = v.id;
    trace->values.push_back(t.shared_impl());
    out.push_back(std::move(t));
  }
  return out;
}

bool captures_recorded(const Trace& trace) {
  return std::any_of(trace.inputs.begin(), trace.inputs.end(), is_recorded);
}

std::vector<Tensor> inlined(const Recorded& recorded, const Location& where) {
  const Trace& trace = *recorded.trace;
  std::vector<Tensor> results = apply(
      "a recorded function", trace.inputs,
      [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
        return inline_graph(into, trace.graph, inputs);
      },
      where);
  settle(trace.checks, results);
  return results;
}

void check_arguments(const char* name, const std::vector<Tensor>& args, const GivenNames& names,
                     const Location& where) {
  if (args.empty())
    throw Error(fmt::format("{}: a function needs at least one tensor argument", name), where);
  check_given(name, names, args, where);
}

std::vector<ir::Type> types_of(const std::vector<Tensor>& tensors) {
  std::vector<ir::Type> types;
  types.reserve(tensors.size());
  for (const Tensor& t : tensors) types.push_back(t.impl()->type);
  return types;
}

Tensor draw_seed(const std::shared_ptr<ContextState>& context,
                 const std::shared_ptr<runtime::Device>& device) {
  const auto words = philox4x32(context->options.seed, context->random_calls++);
  const auto seed = static_cast<std::int64_t>((static_cast<std::uint64_t>(words[1]) << 32 | words[0]) >> 1);
  const ir::Type type{DType::i64, {}};
  std::shared_ptr<runtime::Buffer> buffer = allocate(device, type);
  if (auto done = buffer->write(&seed, sizeof seed); !done) throw Error(done.error().message);
  return make_tensor(context, type, device, std::move(buffer));
}

Tensor recorded_seed(const std::shared_ptr<ContextState>& context,
                     const std::shared_ptr<runtime::Device>& device) {
  Tensor seed = draw_seed(context, device);
  const std::shared_ptr<Trace> trace = outermost_compile(*context);
  if (!trace) return seed;
  if (trace->device != device)
    throw Error(
        fmt::format("random numbers drawn on {} inside a function compiled for {}: open the Context with "
                    "that device, or draw before the call",
                    device->name(), trace->device->name()));
  trace->draws.push_back(trace->inputs.size());
  return add_input(trace, seed, fmt::format("seed{}", trace->draws.size() - 1));
}

std::shared_ptr<Trace> outermost_compile(const ContextState& context) {
  std::shared_ptr<Trace> found;
  for (std::shared_ptr<Trace> t = context.recording(); t; t = t->enclosing)
    if (t->of == Trace::Of::compile) found = t;
  return found;
}

void end(Trace& trace) {
  trace.ended = true;
  for (const std::weak_ptr<TensorImpl>& weak : trace.values)
    if (const std::shared_ptr<TensorImpl> t = weak.lock(); t && t->buffer) t->trace.reset();
}

}  // namespace tilewright::detail
