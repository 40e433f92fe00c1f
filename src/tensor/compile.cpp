// Compiled functions: tracing once per key, guards, graph breaks, and the calls after that.
#include "ir/text.h"
#include "passes/differentiate.h"
#include "tensor/dynamic.h"
#include "tensor/explain.h"
#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

#include <fmt/format.h>

#include <chrono>

namespace tilewright::detail {

namespace {

// What a specialisation was made for.
struct Guard {
  ir::Type type;
  std::shared_ptr<runtime::Device> device;  // of one Context: another has its own, of the same name
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct Specialisation {
  std::weak_ptr<ContextState> context;  // what was compiled goes when it has gone
  std::vector<Guard> guards;
  std::string reason;
  std::shared_ptr<CompiledGraph>
      graph;  // null when the function reads values on the host: then it is traced at each call
  std::vector<Tensor> captured;        // concrete tensors the function used beside its arguments
  std::vector<int> input_of_argument;  // position of argument i among the graph's inputs
  std::vector<Break> breaks;
  std::vector<Piece> pieces;  // of the last call, where there are breaks
  std::string traced;         // the graph as written
  std::string dynamic;        // what came of the dynamic dimensions
  double compile_ms = 0;
};

namespace {
GraphOptions graph_options(const CompileOptions& o) {
  return {.fuse = o.fuse,
          .recompute = o.recompute,
          .allow_tf32 = o.allow_tf32,
          .deterministic = o.deterministic,
          .autotune = o.max_autotune,
          .replay = o.replay};
}
}  // namespace

struct CompiledCore::State {
  ManyFunction function;
  CompileOptions options;
  std::vector<std::unique_ptr<Specialisation>> specialisations;  // most recently used first

  Specialisation* find(const std::vector<Tensor>& args);
  Specialisation& specialise(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                             std::vector<Tensor>& ran, const Location& where);
};

CompiledCore::CompiledCore(ManyFunction function, CompileOptions options)
    : state_(std::make_unique<State>(State{std::move(function), std::move(options), {}})) {}
CompiledCore::~CompiledCore() = default;

namespace {

bool matches(const Specialisation& s, const std::vector<Tensor>& args) {
  if (s.guards.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const TensorImpl& t = *args[i].impl();
    if (!(s.guards[i].type == t.type) || s.guards[i].device != t.device) return false;
  }
  return true;
}

std::string recompile_reason(const std::vector<std::unique_ptr<Specialisation>>& known,
                             const std::vector<Guard>& guards) {
  if (known.empty()) return "first call";
  const std::vector<Guard>& last = known.front()->guards;
  if (last.size() != guards.size())
    return fmt::format("{} arguments instead of {}", guards.size(), last.size());
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (!(guards[i].type == last[i].type))
      return fmt::format("argument {} is {}, was {}", i, to_string(guards[i].type), to_string(last[i].type));
    const std::string &now = guards[i].device->name(), &then = last[i].device->name();
    if (now != then) return fmt::format("argument {} is on {}, was on {}", i, now, then);
    if (guards[i].device != last[i].device) return fmt::format("argument {} is of another Context", i);
  }
  return "the previous specialisation was dropped";
}

struct Traced {
  std::shared_ptr<Trace> trace;
  std::vector<Tensor> results;
};

std::vector<ir::Type> types_of(const std::vector<Tensor>& args) {
  std::vector<ir::Type> types;
  types.reserve(args.size());
  for (const Tensor& a : args) types.push_back(a.impl()->type);
  return types;
}

// Runs the function on recorded stand-ins of the arguments, of the types given.
Traced trace_function(const ManyFunction& function, const std::vector<Tensor>& args,
                      const std::vector<ir::Type>& types, const CompileOptions& options,
                      const std::shared_ptr<ContextState>& context) {
  Traced out{std::make_shared<Trace>("main"), {}};
  if (options.fullgraph) out.trace->no_reads = "compiled with fullgraph";
  out.trace->options = graph_options(options);
  std::vector<Tensor> stand_ins;
  out.trace->arguments = args.size();
  for (std::size_t i = 0; i < args.size(); ++i) {
    // Each argument is an input of its own, even when a tensor is given twice: the next call may give two.
    const ir::NodeId node = out.trace->graph.add_input(fmt::format("a{}", i), types[i]);
    out.trace->inputs.push_back(args[i]);
    Tensor t = make_tensor(context, types[i], args[i].impl()->device, nullptr);
    t.impl()->trace = out.trace;
    t.impl()->node = node;
    out.trace->values.push_back(t.shared_impl());
    stand_ins.push_back(std::move(t));
  }
  out.results = function(stand_ins);
  for (const Tensor& r : out.results)
    if (!r.defined()) throw Error("compile: the function returned a tensor without a value");
  return out;
}

// Makes the results the outputs of the traced graph.
void finish(Traced& traced) {
  std::vector<ir::NodeId> outputs;
  outputs.reserve(traced.results.size());
  for (const Tensor& r : traced.results) outputs.push_back(node_in(*traced.trace, r));
  traced.trace->graph.set_outputs(outputs);
}

// Runs what was recorded since the last host read.
std::vector<Tensor> run_rest(Traced& traced, const std::shared_ptr<ContextState>& context,
                             DeviceState& device) {
  Trace& trace = *traced.trace;
  std::vector<Tensor> results;
  if (!traced.results.empty()) {
    finish(traced);
    const auto compiled = compile_graph(device, trace.graph, trace.options);
    results = run_graph(context, device, *compiled, trace.inputs, trace.options);
    trace.pieces.push_back({ir::print(trace.graph), compiled});
  }
  end(trace);
  return results;
}

}  // namespace

// The specialisation for these arguments, made if there is none; null when the function must be traced at
// each call.
Specialisation* CompiledCore::State::find(const std::vector<Tensor>& args) {
  auto& known = specialisations;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!matches(*known[i], args)) continue;
    const auto at = known.begin() + static_cast<std::ptrdiff_t>(i);
    if (i != 0) std::rotate(known.begin(), at, at + 1);
    return known.front().get();
  }
  return nullptr;
}

// Traces the function and compiles it; with graph breaks runs it instead and leaves its results in `ran`.
Specialisation& CompiledCore::State::specialise(const std::vector<Tensor>& args,
                                                const std::shared_ptr<ContextState>& context,
                                                std::vector<Tensor>& ran, const Location& where) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Guard> guards;
  for (const Tensor& a : args) {
    guards.push_back({a.impl()->type, a.impl()->device});
    if (guards.back().device != guards[0].device)
      throw Error("compile: arguments are " + apart(*guards[0].device, *guards.back().device), where);
  }
  std::erase_if(specialisations, [](const auto& s) { return s->context.expired(); });
  DeviceState& device = context->device(guards[0].device->name());
  Traced traced =
      at_place(where, [&] { return trace_function(function, args, types_of(args), options, context); });
  Trace& trace = *traced.trace;
  auto fresh = std::make_unique<Specialisation>();
  fresh->reason = recompile_reason(specialisations, guards);
  fresh->context = context;
  fresh->guards = std::move(guards);
  fresh->breaks = trace.breaks;
  if (!trace.breaks.empty()) {
    ran = run_rest(traced, context, device);
    fresh->pieces = std::move(trace.pieces);
  } else {
    finish(traced);
    trace.ended = true;
    fresh->traced = ir::print(trace.graph);
    if (options.dynamic.empty()) {
      fresh->graph = compile_graph(device, trace.graph, graph_options(options));
    } else {
      const std::vector<ir::Type> types = types_of(args);
      check_dynamic(options.dynamic, types, where);
      const auto trace_at = [&](const std::vector<ir::Type>& other) {
        Traced again = trace_function(function, args, other, options, context);
        if (!again.trace->breaks.empty()) throw Error("it reads values on the host");
        finish(again);
        return again.trace->graph;
      };
      fresh->graph = compile_for_sizes(device, trace.graph, trace_at, types, options, fresh->dynamic);
    }
    fresh->captured.assign(trace.inputs.begin() + static_cast<std::ptrdiff_t>(args.size()),
                           trace.inputs.end());
  }
  fresh->compile_ms = ms_since(start);
  specialisations.insert(specialisations.begin(), std::move(fresh));
  // With changing sizes there is no end of them; each may hold memory for temporaries.
  constexpr std::size_t kMostSizes = 64;
  if (!options.dynamic.empty() && specialisations.size() > kMostSizes) specialisations.pop_back();
  return *specialisations.front();
}

namespace {

// Arguments, then what the function captured.
std::vector<Tensor> graph_inputs(const Specialisation& s, const std::vector<Tensor>& args) {
  std::vector<Tensor> inputs = args;
  inputs.insert(inputs.end(), s.captured.begin(), s.captured.end());
  return inputs;
}

void check_arguments(const char* name, const std::vector<Tensor>& args, const Location& where) {
  if (args.empty())
    throw Error(fmt::format("{}: a function needs at least one tensor argument", name), where);
  for (const Tensor& a : args)
    if (!a.defined()) throw Error(fmt::format("{}: an argument was never given a value", name), where);
}

}  // namespace

std::vector<Tensor> CompiledCore::call(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  for (const Tensor& a : args)
    if (a.impl()->trace)
      return at_place(where,
                      [&] { return state_->function(args); });  // part of the enclosing function's graph
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::lock_guard lock(context->mutex);
  Specialisation* s = state_->find(args);
  if (s && !s->graph) {
    Traced traced = trace_function(state_->function, args, types_of(args), state_->options, context);
    s->breaks = traced.trace->breaks;
    std::vector<Tensor> results = run_rest(traced, context, context->device(args[0].device()));
    s->pieces = std::move(traced.trace->pieces);
    return results;
  }
  std::vector<Tensor> ran;
  if (!s) s = &state_->specialise(args, context, ran, where);
  if (!s->graph) return ran;
  DeviceState& device = context->device(s->guards[0].device->name());
  const GraphOptions options = graph_options(state_->options);
  if (s->captured.empty()) return run_graph(context, device, *s->graph, args, options);
  return run_graph(context, device, *s->graph, graph_inputs(*s, args), options);
}

void CompiledCore::call_into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& args,
                             const Location& where) {
  const CompiledCall call = prepare(args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "into", where);
  const std::lock_guard lock(context->mutex);
  const std::string device = args[0].device();
  const std::vector<ir::Type>& types = call.graph->outputs;
  if (outputs.size() != types.size())
    throw Error(fmt::format("into: {} outputs given, the function has {}", outputs.size(), types.size()),
                where);
  std::vector<std::shared_ptr<runtime::Buffer>> in, out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) throw Error(fmt::format("into: output {} was never given a value", i), where);
    const TensorImpl& t = *outputs[i].impl();
    if (!(t.type == types[i]) || !t.buffer || t.device->name() != device)
      throw Error(fmt::format("into: output {} must be {} on {}", i, to_string(types[i]), device), where);
    for (const Tensor& a : args)
      if (a.impl()->buffer == t.buffer)
        throw Error(fmt::format("into: output {} is also an argument", i), where);
    out.push_back(t.buffer);
  }
  for (const Tensor& t : call.inputs) in.push_back(t.impl()->buffer);
  run_graph_into(context, context->device(device), *call.graph, in, out, graph_options(state_->options));
}

CompiledCall CompiledCore::prepare(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::lock_guard lock(context->mutex);
  Specialisation* s = state_->find(args);
  std::vector<Tensor> ran;
  if (!s) s = &state_->specialise(args, context, ran, where);
  if (!s->graph)
    throw Error(
        "the function reads values on the host, so it is no single program: explain() names the lines",
        where);
  return {s->graph, graph_inputs(*s, args)};
}

void CompiledCore::edit(std::size_t kernel, const std::string& source, const std::vector<Tensor>& args,
                        const Location& where) {
  const CompiledCall call = prepare(args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "edit", where);
  const std::lock_guard lock(context->mutex);
  const auto& kernels = call.graph->executable->kernels();
  if (kernel >= kernels.size())
    throw Error(fmt::format("edit: there is no kernel {}; the function has {}", kernel, kernels.size()),
                where);
  DeviceState& device = context->device(args[0].device());
  backends::Source edited = kernels[kernel]->source;
  edited.text = source;
  auto loaded = device.store.get_edited(call.graph->compiled.plan.kernels[kernel], edited);
  if (!loaded) throw Error(loaded.error().message, where);
  // Other functions with the same graph share what was compiled for it: the edited one is this function's
  // own.
  auto own = load_graph(device, call.graph->compiled, call.graph->outputs);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    own->executable->replace(i, i == kernel ? *loaded : kernels[i]);
  own->tuning = call.graph->tuning;
  state_->find(args)->graph = std::move(own);
}

std::vector<SpecialisationReport> CompiledCore::report() const {
  std::vector<SpecialisationReport> out;
  for (const auto& s : state_->specialisations) {
    SpecialisationReport r;
    for (const Guard& g : s->guards)
      r.key += fmt::format("{}{} on {}", r.key.empty() ? "" : ", ", to_string(g.type), g.device->name());
    r.reason = s->reason;
    r.dynamic = s->dynamic;
    r.compile_ms = s->compile_ms;
    r.graph = s->traced;
    for (const Break& b : s->breaks)
      r.breaks.push_back(
          fmt::format("host read of {} at {}, {:.3f} ms", to_string(b.shape), b.location, b.cost_ms));
    if (s->graph) describe(*s->graph, r);
    for (const Piece& piece : s->pieces) {
      r.graph += piece.traced;
      describe(*piece.graph, r);
    }
    out.push_back(std::move(r));
  }
  return out;
}

std::string CompiledCore::explain() const { return tilewright::explain(report()); }

std::vector<Tensor> value_and_grad(const ManyFunction& f, const std::vector<int>& wrt,
                                   const std::vector<Tensor>& args, const Location& where) {
  check_arguments("value_and_grad", args, where);
  for (int i : wrt)
    if (i < 0 || i >= static_cast<int>(args.size()))
      throw Error(fmt::format("value_and_grad: argument {} out of range, {} given", i, args.size()), where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "value_and_grad", where);
  const std::lock_guard lock(context->mutex);
  // A trace of its own, of shapes only: a host read inside has nothing to read.
  auto trace = std::make_shared<Trace>("forward");
  trace->no_reads = "that is differentiated, as a whole";
  std::vector<Tensor> stand_ins;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ir::NodeId node = trace->graph.add_input(fmt::format("a{}", i), args[i].impl()->type);
    trace->inputs.push_back(args[i]);
    Tensor t = make_tensor(context, args[i].impl()->type, args[i].impl()->device, nullptr);
    t.impl()->trace = trace;
    t.impl()->node = node;
    stand_ins.push_back(std::move(t));
  }
  const std::vector<Tensor> results = at_place(where, [&] { return f(stand_ins); });
  std::vector<ir::NodeId> outputs;
  outputs.reserve(results.size());
  for (const Tensor& r : results) outputs.push_back(node_in(*trace, r));
  trace->graph.set_outputs(outputs);
  const ir::Graph joint = at_place(where, [&] { return passes::differentiate(trace->graph, wrt); });
  return apply(
      "value_and_grad", trace->inputs,
      [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
        return inline_graph(into, joint, inputs);
      },
      where);
}

}  // namespace tilewright::detail
