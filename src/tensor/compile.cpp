// Compiled functions: tracing once per key, guards, graph breaks, and the calls after that.
#include "ir/text.h"
#include "runtime/outputs_apart.h"
#include "tensor/explain.h"
#include "tensor/in_place.h"
#include "tensor/index_check.h"
#include "tensor/specialisation.h"
#include "tensor/trace.h"

#include <tilewright/base/clock.h>
#include <tilewright/tensor/compile.h>

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>

namespace tilewright::detail {

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
  struct Running {
    std::thread::id thread;
    std::vector<Guard> guards;  // of the arguments
  };
  ManyFunction function;
  CompileOptions options;
  std::vector<std::shared_ptr<Specialisation>> specialisations;  // most recently used first
  std::list<Running> running;  // the calls of the function that are being recorded
  // Guards all of these: calls with tensors of several Contexts do not share a Context's mutex. Both are
  // taken together, so that no thread holds one of them while it waits for the other. Neither is held while
  // the function runs: after that, other threads may have made specialisations and dropped some.
  OpenMutex mutex;
  std::size_t runs = 0;  // of the function so far: where it has grown, what was looked up may be gone

  SizeHistory history;
  bool reads_shapes = false;  // it did at least once: then it is called with sizes of arguments only
  // Whether a specialisation for a range will do, or only one that is for the arguments' sizes alone: what
  // writes over its inputs was proved for these.
  enum class Sizes : std::uint8_t { of_a_range, alone };
  // What a call runs, with the sizes of its arguments, as long as the function is not run again.
  struct Ready {
    std::shared_ptr<Specialisation> s;
    std::shared_ptr<CompiledGraph> graph;    // null: the function has graph breaks, and runs at each call
    std::optional<std::vector<Tensor>> ran;  // then: what it returned, where this was seen by running it
  };

  // `wanted` says what the program of a specialisation is to write over its inputs.
  template <class Wanted>
  Ready ready(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
              const Location& where, const Wanted& wanted);
  template <class Wanted>
  Ready as_one_program(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                       const Location& where, const Wanted& wanted);
  Ready prepared(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                 const Location& where);
  void use(const std::shared_ptr<Specialisation>& s);
  std::shared_ptr<Specialisation> find_alone(const std::vector<Tensor>& args);
  template <class Traced>
  std::shared_ptr<Specialisation> find(const std::vector<Tensor>& args, Sizes sizes, const Traced& traced);
  TracedAt traced_at(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                     const std::shared_ptr<ContextState>& context, const Location& where);
  std::shared_ptr<Specialisation> specialise(const std::vector<Tensor>& args,
                                             const std::shared_ptr<ContextState>& context, Sizes sizes,
                                             std::optional<std::vector<Tensor>>& ran, const Location& where);
  std::shared_ptr<CompiledGraph> program(Specialisation& s, const std::vector<passes::Overwrite>& over,
                                         const std::vector<Tensor>& args,
                                         const std::shared_ptr<ContextState>& context, const Location& where);
  std::vector<Tensor> run_function(const std::vector<Tensor>& args,
                                   const std::shared_ptr<ContextState>& context);
  Recorded record(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                  const std::shared_ptr<ContextState>& context, const Location& where,
                  const std::string& no_breaks = "");
  SizeFamily::Others recorded_sizes(const Specialisation& s) const;
};

CompiledCore::CompiledCore(ManyFunction function, CompileOptions options)
    : state_(std::make_unique<State>(std::move(function), std::move(options))) {}
CompiledCore::~CompiledCore() = default;

namespace {

// Runs what was recorded since the last graph break, or writes it into the function that encloses this one.
// Results on other devices were made at once: they are the caller's as they are.
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

}  // namespace

// A function of tensors is the same at each call with the same types: one that calls itself with them never
// ends, and what it calls itself with must come to an end as well.
std::vector<Tensor> CompiledCore::State::run_function(const std::vector<Tensor>& args,
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
  ++runs;
  std::vector<Tensor> results = [&] {
    const Opened open(mutex, context->mutex);
    return function(args);
  }();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i].defined())
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

// Makes it the one that was used last, also where it was dropped while the function was recorded.
void CompiledCore::State::use(const std::shared_ptr<Specialisation>& s) {
  auto& known = specialisations;
  if (const auto at = std::find(known.begin(), known.end(), s); at != known.end()) {
    std::rotate(known.begin(), at, at + 1);
    return;
  }
  known.insert(known.begin(), s);
  if (known.size() > kMostSpecialisations) known.pop_back();
}

// The specialisation for the sizes of these arguments alone; null where there is none.
std::shared_ptr<Specialisation> CompiledCore::State::find_alone(const std::vector<Tensor>& args) {
  const auto is_it = [&](const auto& s) { return !s->range && matches(*s, args); };
  const auto at = std::find_if(specialisations.begin(), specialisations.end(), is_it);
  if (at == specialisations.end()) return nullptr;
  std::rotate(specialisations.begin(), at, at + 1);
  return specialisations.front();
}

// The specialisation for these arguments, with their sizes; null where there is none. `traced` gives the
// function's recording for them, where a range asks for it.
template <class Traced>
std::shared_ptr<Specialisation> CompiledCore::State::find(const std::vector<Tensor>& args, Sizes sizes,
                                                          const Traced& traced) {
  if (std::shared_ptr<Specialisation> s = find_alone(args); s || sizes == Sizes::alone) return s;
  const std::vector<std::shared_ptr<Specialisation>> known = specialisations;  // others may change them
  for (const std::shared_ptr<Specialisation>& s : known) {
    if (!serves(*s, args) || !take_sizes(*s, args, traced)) continue;
    use(s);
    return s;
  }
  return nullptr;
}

// Other threads may do whatever they like with specialisations while the function runs: where it has run on
// the way to a program, the way is gone again, over what is there by then.
template <class Wanted>
CompiledCore::State::Ready CompiledCore::State::ready(const std::vector<Tensor>& args,
                                                      const std::shared_ptr<ContextState>& context,
                                                      const Location& where, const Wanted& wanted) {
  const auto traced = [&] { return traced_at(args, types_of(args), context, where); };
  for (Sizes sizes = Sizes::of_a_range;;) {
    Ready out;
    out.s = find(args, sizes, traced);
    if (!out.s) out.s = specialise(args, context, sizes, out.ran, where);
    if (!out.s->recorded) return out;
    const std::vector<passes::Overwrite> over = wanted(*out.s);
    if (out.s->range && !over.empty()) {
      sizes = Sizes::alone;
      continue;
    }
    const std::size_t before = runs;
    out.graph = program(*out.s, over, args, context, where);
    if (runs == before) return out;
  }
}

// Traces the function; with graph breaks runs it as well and leaves its results in `ran`.
std::shared_ptr<Specialisation> CompiledCore::State::specialise(const std::vector<Tensor>& args,
                                                                const std::shared_ptr<ContextState>& context,
                                                                Sizes sizes,
                                                                std::optional<std::vector<Tensor>>& ran,
                                                                const Location& where) {
  const auto start = std::chrono::steady_clock::now();
  Donation::wishes(options.donate, args.size());  // throws
  std::vector<Guard> guards = guards_of(args);
  std::erase_if(specialisations, [](const auto& s) { return s->context.expired(); });
  DeviceState& device = context->device(guards[0].device->name());
  const std::uint64_t drawn = context->random_calls;
  Recorded recorded = record(args, types_of(args), context, where);
  Trace& trace = *recorded.trace;
  if (captures_recorded(trace))
    throw Error(
        "the function uses values of another that is being recorded, so it is no program by itself: make "
        "them its arguments");
  auto fresh = std::make_shared<Specialisation>();
  fresh->reason = recompile_reason(specialisations, guards);
  fresh->context = context;
  fresh->guards = std::move(guards);
  fresh->breaks = trace.breaks;
  if (!trace.breaks.empty()) {
    ran = run_rest(recorded, context, device);
    fresh->pieces = std::move(trace.pieces);
  } else {
    finish(recorded);
    context->undraw(drawn, trace.draws.size());  // the seeds are drawn at the call
    std::shared_ptr<Specialisation> other = find(args, sizes, [&] { return TracedAt(trace); });
    if (other && other->recorded) return other;  // another thread has recorded it meanwhile
    fresh->recorded = trace.graph;
    fresh->captured.assign(trace.inputs.begin() + static_cast<std::ptrdiff_t>(args.size()),
                           trace.inputs.end());
    fresh->draws = trace.draws;
    fresh->checks = trace.checks;
    fresh->times.trace_ms = ms_since(start);
  }
  fresh->compile_ms = fresh->breaks.empty() ? fresh->times.trace_ms : ms_since(start);
  use(fresh);
  return fresh;
}

// The function's graphs at other sizes of arguments that it was called with.
SizeFamily::Others CompiledCore::State::recorded_sizes(const Specialisation& s) const {
  const auto types_of_guards = [](const Specialisation& one) {
    std::vector<ir::Type> types;
    types.reserve(one.guards.size());
    for (const Guard& g : one.guards) types.push_back(g.type);
    return types;
  };
  constexpr std::size_t kMost = 3;  // each is lowered to be compared with
  const std::vector<ir::Type> types = types_of_guards(s);
  std::vector<ir::Graph> graphs;
  for (const std::shared_ptr<Specialisation>& other : specialisations)
    if (graphs.size() < kMost && other.get() != &s && other->recorded && !other->range &&
        other->guards.front().device == s.guards.front().device &&
        are_alike(types, types_of_guards(*other), options.dynamic))
      graphs.push_back(*other->recorded);
  return [graphs = std::move(graphs)](std::size_t i) {
    return i < graphs.size() ? std::optional(graphs[i]) : std::nullopt;
  };
}

// Compiles what was recorded, or finds it compiled. What cannot be compiled is forgotten.
std::shared_ptr<CompiledGraph> CompiledCore::State::program(Specialisation& s,
                                                            const std::vector<passes::Overwrite>& over,
                                                            const std::vector<Tensor>& args,
                                                            const std::shared_ptr<ContextState>& context,
                                                            const Location& where) {
  const auto known = [&]() -> std::shared_ptr<CompiledGraph> {
    const auto at =
        std::find_if(s.programs.begin(), s.programs.end(), [&](const Program& p) { return p.over == over; });
    if (at == s.programs.end()) return nullptr;
    std::rotate(s.programs.begin(), at, at + 1);
    return s.programs.front().graph;
  };
  if (std::shared_ptr<CompiledGraph> graph = known()) return graph;
  const auto start = std::chrono::steady_clock::now();
  DeviceState& device = context->device(s.guards[0].device->name());
  GraphOptions how = graph_options(options);
  how.over = over;
  const TraceAt trace_at = [&](const std::vector<ir::Type>& other) {
    return traced_at(args, other, context, where);
  };
  std::shared_ptr<CompiledGraph> graph;
  std::string dynamic;
  bool shares_kernels = false;
  try {
    if (!options.dynamic.empty()) {
      const std::vector<ir::Type> types = types_of(args);
      check_dynamic(options.dynamic, types, where);
      const SizeFamily::Others others =
          reads_shapes ? recorded_sizes(s) : imagined_sizes(trace_at, types, options.dynamic);
      graph = compile_for_sizes(device, *s.recorded, others, how, dynamic);
      if (reads_shapes) dynamic += "; each size is lowered, as the function reads shapes";
    }
    shares_kernels = graph != nullptr;
    if (!graph) graph = compile_graph(device, *s.recorded, how);
  } catch (...) {
    if (s.programs.empty())
      std::erase_if(specialisations, [&](const auto& known_one) { return known_one.get() == &s; });
    throw;
  }
  // Another thread has compiled it while the function was recorded, or lets it serve other sizes.
  if (s.range || known()) return graph;
  s.programs.insert(s.programs.begin(), {over, graph});
  if (s.programs.size() > kMostPrograms) s.programs.pop_back();
  s.dynamic = std::move(dynamic);
  const bool may_range = over.empty() && options.donate.empty() && !options.max_autotune && !reads_shapes;
  const bool is_kept = std::any_of(specialisations.begin(), specialisations.end(),
                                   [&](const auto& k) { return k.get() == &s; });
  if (shares_kernels && s.programs.size() == 1 && may_range && is_kept) {
    open_range(s, history, device, trace_at, options.dynamic, how);
    // Those for single sizes that it serves are done with.
    std::erase_if(specialisations,
                  [&](const auto& other) { return other.get() != &s && replaces(s, *other); });
  }
  const double ms = ms_since(start);
  const runtime::BuildTimes built = graph->executable->take_build_times();
  s.times.print_ms += built.print_ms;
  s.times.compiler_ms += built.compiler_ms;
  s.times.load_ms += built.load_ms;
  s.times.passes_ms += ms - built.print_ms - built.compiler_ms - built.load_ms;
  s.compile_ms += ms;
  return graph;
}

namespace {

// Arguments, then what the function captured, with the seeds of its recording.
std::vector<Tensor> recorded_inputs(const Specialisation& s, const std::vector<Tensor>& args,
                                    const Location& where) {
  check_given("compile", "captured tensor", s.captured, where);
  std::vector<Tensor> inputs = args;
  inputs.insert(inputs.end(), s.captured.begin(), s.captured.end());
  return inputs;
}

// The same with seeds that are drawn anew.
std::vector<Tensor> graph_inputs(const Specialisation& s, const std::vector<Tensor>& args,
                                 const std::shared_ptr<ContextState>& context, const Location& where) {
  std::vector<Tensor> inputs = recorded_inputs(s, args, where);
  for (std::size_t i : s.draws) inputs[i] = draw_seed(context, s.guards[0].device);
  return inputs;
}

}  // namespace

std::vector<Tensor> CompiledCore::call(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  if (at_place(where, [&] { return recording_trace(*context, args); }))
    return at_place(where, [&] {
      return state_->run_function(args, context);
    });  // part of the enclosing function's graph
  for (const Tensor& a : args)
    if (a.impl()->device != args[0].impl()->device)
      throw Error("compile: arguments are " + apart(*args[0].impl()->device, *a.impl()->device), where);
  if (outermost_compile(*context)) {  // of another device: this one cannot be part of it
    const Aside aside(context, "call on " + args[0].device(), args, {}, where);
    return call(args, where);
  }
  const std::vector<int>& donated = state_->options.donate;
  State::Ready ready;
  if (!context->recording())
    ready = at_place(where, [&] {
      return state_->ready(args, context, where,
                           [&](const Specialisation&) { return Donation::wishes(donated, args.size()); });
    });
  if (ready.ran)
    return std::move(*ready.ran);  // of a function with graph breaks, which nothing is donated to
  // Inside another function that is being recorded this one may capture its values, or draw random numbers
  // that belong to it: whether it does is seen by recording.
  if (!ready.graph) {
    Recorded recorded = state_->record(args, types_of(args), context, where);
    std::vector<Break> breaks = recorded.trace->breaks;
    std::vector<Tensor> results =
        at_place(where, [&] { return run_rest(recorded, context, context->device(args[0].device())); });
    if (const auto s = state_->find_alone(args); s && !s->recorded) {
      s->breaks = std::move(breaks);
      s->pieces = std::move(recorded.trace->pieces);
    }
    return results;
  }
  const Specialisation& s = *ready.s;
  CompiledGraph& graph = *ready.graph;
  DeviceState& device = context->device(s.guards[0].device->name());
  const GraphOptions options = graph_options(state_->options);
  if (s.captured.empty() && s.checks.empty() && donated.empty())
    return run_graph(context, device, graph, args, options);
  const std::vector<Tensor> inputs = graph_inputs(s, args, context, where);
  std::vector<Tensor> results = at_place(where, [&] {
    const Donation donation(donated, inputs, args.size());
    std::vector<Tensor> out = run_graph(context, device, graph, inputs, options, donation.outputs(graph));
    donation.spend(where);
    return out;
  });
  settle(s.checks, results);
  return results;
}

namespace {

// An output has a function's type, memory, and is not another output.
void check_outputs(const std::vector<Tensor>& outputs, const std::vector<ir::Type>& types,
                   const runtime::Device& device, const Location& where) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorImpl& t = *outputs[i].impl();
    if (t.device->name() == device.name() && t.device.get() != &device)
      throw Error(
          fmt::format("into: output {} is of another Context: make it by the one of the arguments", i),
          where);
    if (!(t.type == types[i]) || t.device.get() != &device)
      throw Error(fmt::format("into: output {} must be {} on {}, it is {} on {}", i, to_string(types[i]),
                              device.name(), to_string(t.type), t.device->name()),
                  where);
    for (std::size_t k = 0; k < i; ++k)
      if (outputs[k].impl()->buffer == t.buffer)
        throw Error(fmt::format("into: outputs {} and {} are the same tensor", k, i), where);
  }
}

}  // namespace

void CompiledCore::call_into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& arguments,
                             const Location& where) {
  check_arguments("into", arguments, where);
  check_given("into", "output", outputs, where);
  const std::shared_ptr<ContextState> context = context_of(arguments[0], "into", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  const Aside aside(context, "into()", arguments, outputs, where);
  const std::vector<Tensor> args = apart_from_recordings(arguments);
  const std::shared_ptr<runtime::Device>& device = args[0].impl()->device;
  std::vector<ir::Type> types;
  std::size_t count = 0;
  const State::Ready ready = state_->as_one_program(args, context, where, [&](const Specialisation& s) {
    types = s.range ? s.graph()->outputs : output_types(*s.recorded);
    count = types.size() - 2 * s.checks.size();
    if (outputs.size() != count)
      throw Error(fmt::format("into: {} outputs given, the function has {}", outputs.size(), count), where);
    check_outputs(outputs, types, *device, where);
    return overwrites(outputs, recorded_inputs(s, args, where));
  });
  Specialisation& s = *ready.s;
  CompiledGraph& graph = *ready.graph;
  const std::vector<Tensor> inputs = graph_inputs(s, args, context, where);
  OutputMemory memory =
      at_place(where, [&] { return OutputMemory(outputs, args.size(), graph.compiled.overwriting); });
  std::vector<std::shared_ptr<runtime::Buffer>> in, out = memory.buffers();
  in.reserve(inputs.size());
  for (const Tensor& t : inputs) in.push_back(t.impl()->buffer);
  std::vector<Tensor> checked;
  for (std::size_t i = count; i < types.size(); ++i) {
    out.push_back(allocate(device, types[i]));
    checked.push_back(make_tensor(context, types[i], device, out.back()));
  }
  at_place(where, [&] {
    run_graph_into(context, context->device(device->name()), graph, in, out, graph_options(state_->options));
    if (auto done = memory.hand_over(); !done) raise(done.error(), done.error().message);
  });
  s.in_place = memory.lines();
  settle(s.checks, checked);
}

// The function as one program.
template <class Wanted>
CompiledCore::State::Ready CompiledCore::State::as_one_program(const std::vector<Tensor>& args,
                                                               const std::shared_ptr<ContextState>& context,
                                                               const Location& where, const Wanted& wanted) {
  if (context->recording())
    throw Error("a function that is recorded has no values to run this with: call it outside", where);
  return at_place(where, [&] {
    Ready out = ready(args, context, where, wanted);
    if (!out.graph)
      throw Error(
          "the function has graph breaks, so it is no single program: explain() names the lines. Call it "
          "and use what it returns");
    return out;
  });
}

// The program that was called last, or that of a call.
CompiledCore::State::Ready CompiledCore::State::prepared(const std::vector<Tensor>& args,
                                                         const std::shared_ptr<ContextState>& context,
                                                         const Location& where) {
  return as_one_program(args, context, where, [&](const Specialisation& s) {
    return s.programs.empty() ? Donation::wishes(options.donate, args.size()) : s.programs.front().over;
  });
}

CompiledCall CompiledCore::prepare(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  const State::Ready ready = state_->prepared(args, context, where);
  const Specialisation& s = *ready.s;
  const std::uint64_t drawn = context->random_calls;
  CompiledCall call{ready.graph, graph_inputs(s, args, context, where), s.draws.size(), 2 * s.checks.size()};
  context->random_calls = drawn;
  return call;
}

void CompiledCore::edit(std::size_t kernel, const std::string& source, const std::vector<Tensor>& args,
                        const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "edit", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  const State::Ready ready = state_->prepared(args, context, where);
  const auto& kernels = ready.graph->executable->kernels();
  if (kernel >= kernels.size())
    throw Error(fmt::format("edit: there is no kernel {}; the function has {}", kernel, kernels.size()),
                where);
  DeviceState& device = context->device(args[0].device());
  backends::Source edited = kernels[kernel]->source;
  edited.text = source;
  auto loaded = device.store.get_edited(ready.graph->compiled.plan.kernels[kernel], edited);
  if (!loaded) throw Error(loaded.error().message, where);
  // Other functions with the same graph share what was compiled for it: the edited one is this function's
  // own.
  auto own = load_graph(device, ready.graph->compiled, ready.graph->outputs);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    own->executable->replace(i, i == kernel ? *loaded : kernels[i]);
  own->tuning = ready.graph->tuning;
  ready.s->programs.front().graph = std::move(own);
}

void CompiledCore::measure(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "measure", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);  // nobody else gives the program other sizes
  const CompiledCall call = prepare(args, where);
  std::vector<std::shared_ptr<runtime::Buffer>> in, out;
  for (const Tensor& t : call.inputs) in.push_back(t.impl()->buffer);
  for (const ir::Type& type : call.graph->outputs) out.push_back(allocate(args[0].impl()->device, type));
  // What a program overwrites is another tensor's here, of the same values.
  for (const passes::Overwriting& o : call.graph->compiled.overwriting)
    if (o.why_not.empty())
      out[static_cast<std::size_t>(o.what.output)] = in[static_cast<std::size_t>(o.what.inputs.front())];
  const auto apart = runtime::outputs_apart(in, out);
  if (!apart) throw Error(apart.error().message, where);
  auto times = runtime::time_steps(*call.graph->executable, in, *apart);
  if (!times) throw Error(times.error().message, where);
  call.graph->times = std::move(*times);
}

namespace {

SpecialisationReport report_of(const Specialisation& s, const CompileOptions& options) {
  SpecialisationReport r;
  for (const Guard& g : s.guards)
    r.key += fmt::format("{}{} on {}", r.key.empty() ? "" : ", ", to_string(g.type), g.device->name());
  r.reason = s.reason;
  r.dynamic = s.dynamic;
  r.compile_ms = s.compile_ms;
  r.times = s.times;
  r.draws = static_cast<int>(s.draws.size());
  if (s.recorded) r.graph = ir::print(*s.recorded);
  for (const Break& b : s.breaks)
    r.breaks.push_back(fmt::format("{} at {}{}", b.what, b.location,
                                   b.cost_ms > 0 ? fmt::format(", {:.3f} ms", b.cost_ms) : ""));
  r.in_place = s.in_place;
  if (const auto graph = s.graph();
      graph && s.programs[0].over == Donation::wishes(options.donate, s.guards.size()))
    r.in_place = Donation::lines(graph->compiled.overwriting);
  if (const auto graph = s.graph()) describe(*graph, r);
  for (const Piece& piece : s.pieces) {
    r.graph += piece.traced;
    describe(*piece.graph, r);
  }
  return r;
}

}  // namespace

std::vector<SpecialisationReport> CompiledCore::report() const {
  std::vector<std::shared_ptr<Specialisation>> all;
  {
    const std::lock_guard lock(state_->mutex);
    all = state_->specialisations;
  }
  std::vector<SpecialisationReport> out;
  for (const std::shared_ptr<Specialisation>& s : all) {
    // Other functions of the Context that have the same graph may measure and tune it meanwhile.
    const std::shared_ptr<ContextState> context = s->context.lock();
    OpenMutex gone;
    const std::scoped_lock lock(state_->mutex, context ? context->mutex : gone);
    out.push_back(report_of(*s, state_->options));
  }
  return out;
}

std::string CompiledCore::explain() const { return tilewright::explain(report()); }

}  // namespace tilewright::detail
