// A compiled function's runs: on stand-ins that record it, and of what a graph break leaves.
#include "tensor/compiled_state.h"

#include "ir/text.h"
#include "tensor/index_check.h"
#include "tensor/trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

GraphOptions graph_options(const CompileOptions& o) {
  return {.fuse = o.fuse,
          .recompute = o.recompute,
          .precision = o.precision,
          .deterministic = o.deterministic,
          .autotune = o.max_autotune,
          .libraries = o.libraries,
          .replay = o.replay,
          .memory_budget = o.memory_budget};
}

std::vector<Tensor> run_rest(Recorded& recorded, const std::shared_ptr<ContextState>& context,
                             DeviceState& device) {
  Trace& trace = *recorded.trace;
  const std::vector<Tensor> all = recorded.results;
  const auto elsewhere = [&](const Tensor& r) { return r.impl()->device != trace.device; };
  std::erase_if(recorded.results, elsewhere);
  std::vector<Tensor> results;
  const bool gives = !recorded.results.empty() || !trace.checks.empty();
  if (gives) finish(recorded);  // what it returns may be a value of the enclosing function, too
  if (captures_recorded(trace)) {
    results = inlined(recorded, trace.where);
  } else if (gives) {
    const auto compiled = compile_graph(device, trace.graph, trace.options);
    results = run_graph(context, device, *compiled, trace.inputs, trace.options);
    settle(trace.checks, results);
    trace.pieces.push_back({ir::print(trace.graph), compiled});
  }
  end(trace);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (elsewhere(all[i])) results.insert(results.begin() + static_cast<std::ptrdiff_t>(i), all[i]);
  return results;
}

// A function of tensors is the same at each call with the same types: one that calls itself with them never
// ends, and what it calls itself with must come to an end as well.
Leaves CompiledCore::State::run_function(const std::vector<Tensor>& args,
                                         const std::shared_ptr<ContextState>& context) {
  constexpr std::ptrdiff_t kMostNested = 256;  // a few kB of the stack each
  Running call{std::this_thread::get_id(), guards_of(args)};
  const auto nested = [&](const Running& r) { return r.thread == call.thread; };
  if (std::any_of(running.begin(), running.end(),
                  [&](const Running& r) { return nested(r) && r.guards == call.guards; }))
    throw Error(
        "compile: the function calls itself with arguments of the same types, which never ends: write the "
        "repetition as a loop, or call it with smaller tensors until it ends");
  if (std::count_if(running.begin(), running.end(), nested) == kMostNested)
    throw Error(fmt::format(
        "compile: the function calls itself {} times deep: write the repetition as a loop", kMostNested));
  struct Entry {
    std::list<Running>& all;
    std::list<Running>::iterator own;
    ~Entry() { all.erase(own); }
  } const entry{running, running.insert(running.end(), std::move(call))};
  ++opened;
  Leaves results = [&] {
    const Opened open(mutex, context->mutex);
    return function({args, structure});
  }();
  for (std::size_t i = 0; i < results.tensors.size(); ++i)
    if (!results.tensors[i].defined())
      throw Error(fmt::format("compile: result {} of the function was never given a value", i));
  return results;
}

// Runs the function on recorded stand-ins of the arguments, of the types given. Where `no_breaks` says of
// what function, a graph break is an Error, and nothing is drawn for it.
Recorded CompiledCore::State::record(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                                     const std::shared_ptr<ContextState>& context, const Location& where,
                                     const std::string& no_breaks) {
  auto trace = std::make_shared<Trace>(Trace::Of::compile, "main", where);
  trace->no_breaks = no_breaks;
  if (options.fullgraph)
    trace->no_breaks =
        "compiled with fullgraph: return the tensor and read it after the call, or allow graph breaks";
  trace->options = graph_options(options);
  struct Note {  // also where the function throws
    State& state;
    ContextState& context;
    std::shared_ptr<Trace> trace;
    bool is_drawn;
    std::uint64_t drawn = context.random_calls;
    ~Note() {
      state.reads_shapes = state.reads_shapes || trace->reads_shapes;
      if (!is_drawn) context.undraw(drawn, trace->draws.size());
    }
  } const note{*this, *context, trace, no_breaks.empty()};
  return at_place(where, [&] {
    Recorded recorded =
        record_function([&](const std::vector<Tensor>& in) { return run_function(in, context); }, args, types,
                        std::move(trace), context);
    for (const Tensor& r : recorded.results)
      if (r.impl()->device != recorded.trace->device)
        note_break(*recorded.trace, "result on " + r.impl()->device->name(), where);
    return recorded;
  });
}

// The function as it is recorded for other sizes than those of the arguments' memory: none of its values can
// be computed.
TracedAt CompiledCore::State::traced_at(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                                        const std::shared_ptr<ContextState>& context, const Location& where) {
  Recorded again = record(args, types, context, where, "traced for other sizes");
  finish(again);
  return TracedAt(*again.trace);
}

}  // namespace tilewright::detail
