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
#include <mutex>

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
  ManyFunction function;
  CompileOptions options;
  std::vector<std::shared_ptr<Specialisation>> specialisations;  // most recently used first
  std::vector<std::vector<Guard>>
      running;  // the calls of the function that are being recorded, outermost first
  // Guards all of these: calls with tensors of several Contexts do not share a Context's mutex. Both are
  // taken together, so that no thread holds one of them while it waits for the other.
  std::recursive_mutex mutex;

  SizeHistory history;
  bool reads_shapes = false;  // it did at least once: then it is called with sizes of arguments only
  // Whether a specialisation for a range will do, or only one that is for the arguments' sizes alone: what
  // writes over its inputs was proved for these.
  enum class Sizes : std::uint8_t { of_a_range, alone };

  Specialisation* find(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                       const Location& where, Sizes sizes = Sizes::of_a_range);
  Specialisation& specialised(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                              const Location& where, Sizes sizes);
  TracedAt traced_at(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                     const std::shared_ptr<ContextState>& context, const Location& where);
  Specialisation& specialise(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                             std::vector<Tensor>& ran, const Location& where);
  CompiledGraph& program(Specialisation& s, const std::vector<passes::Overwrite>& over,
                         const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                         const Location& where);
  std::vector<Tensor> run_function(const std::vector<Tensor>& args);
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
std::vector<Tensor> CompiledCore::State::run_function(const std::vector<Tensor>& args) {
  constexpr std::size_t kMostNested = 256;  // a few kB of the stack each
  std::vector<Guard> guards = guards_of(args);
  if (std::find(running.begin(), running.end(), guards) != running.end())
    throw Error(
        "compile: the function calls itself with arguments of the same types, which never ends: write the "
        "repetition as a loop, or call it with smaller tensors until it ends");
  if (running.size() == kMostNested)
    throw Error(fmt::format(
        "compile: the function calls itself {} times deep: write the repetition as a loop", kMostNested));
  running.push_back(std::move(guards));
  struct Leave {
    std::vector<std::vector<Guard>>& running;
    ~Leave() { running.pop_back(); }
  } const leave{running};
  std::vector<Tensor> results = function(args);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i].defined())
      throw Error(fmt::format("compile: result {} of the function was never given a value", i));
  return results;
}

// Runs the function on recorded stand-ins of the arguments, of the types given. A graph break is an Error
// where `no_breaks` says of what function.
Recorded CompiledCore::State::record(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                                     const std::shared_ptr<ContextState>& context, const Location& where,
                                     const std::string& no_breaks) {
  auto trace = std::make_shared<Trace>(Trace::Of::compile, "main", where);
  trace->no_breaks = no_breaks;
  if (options.fullgraph)
    trace->no_breaks =
        "compiled with fullgraph: return the tensor and read it after the call, or allow graph breaks";
  trace->options = graph_options(options);
  struct NoteShapes {
    State& state;
    std::shared_ptr<Trace> trace;
    ~NoteShapes() { state.reads_shapes = state.reads_shapes || trace->reads_shapes; }
  } const note{*this, trace};
  return at_place(where, [&] {
    Recorded recorded = record_function([&](const std::vector<Tensor>& in) { return run_function(in); }, args,
                                        types, std::move(trace), context);
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
  struct Undrawn {
    ContextState& context;
    std::uint64_t drawn = context.random_calls;
    ~Undrawn() { context.random_calls = drawn; }
  } const undrawn{*context};
  Recorded again = record(args, types, context, where, "traced for other sizes");
  finish(again);
  return TracedAt(*again.trace);
}

// The specialisation for these arguments, with their sizes; null where there is none.
Specialisation* CompiledCore::State::find(const std::vector<Tensor>& args,
                                          const std::shared_ptr<ContextState>& context, const Location& where,
                                          Sizes sizes) {
  auto& known = specialisations;
  const auto used = [&](std::size_t i) {
    const auto at = known.begin() + static_cast<std::ptrdiff_t>(i);
    if (i != 0) std::rotate(known.begin(), at, at + 1);
    return known.front().get();
  };
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!known[i]->range && matches(*known[i], args)) return used(i);
  if (sizes == Sizes::alone) return nullptr;
  const auto traced = [&] { return traced_at(args, types_of(args), context, where); };
  const std::vector<std::shared_ptr<Specialisation>> ranges = known;  // recording may call this function
  for (const std::shared_ptr<Specialisation>& s : ranges)
    if (serves(*s, args) && take_sizes(*s, args, traced))
      return used(static_cast<std::size_t>(std::find(known.begin(), known.end(), s) - known.begin()));
  return nullptr;
}

// Traces the function; with graph breaks runs it as well and leaves its results in `ran`.
Specialisation& CompiledCore::State::specialise(const std::vector<Tensor>& args,
                                                const std::shared_ptr<ContextState>& context,
                                                std::vector<Tensor>& ran, const Location& where) {
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
    context->random_calls = drawn;  // the seeds are drawn at the call
    fresh->recorded = trace.graph;
    fresh->captured.assign(trace.inputs.begin() + static_cast<std::ptrdiff_t>(args.size()),
                           trace.inputs.end());
    fresh->draws = trace.draws;
    fresh->checks = trace.checks;
    fresh->times.trace_ms = ms_since(start);
  }
  fresh->compile_ms = fresh->breaks.empty() ? fresh->times.trace_ms : ms_since(start);
  specialisations.insert(specialisations.begin(), std::move(fresh));
  if (specialisations.size() > kMostSpecialisations) specialisations.pop_back();
  return *specialisations.front();
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
CompiledGraph& CompiledCore::State::program(Specialisation& s, const std::vector<passes::Overwrite>& over,
                                            const std::vector<Tensor>& args,
                                            const std::shared_ptr<ContextState>& context,
                                            const Location& where) {
  const auto known =
      std::find_if(s.programs.begin(), s.programs.end(), [&](const Program& p) { return p.over == over; });
  if (known != s.programs.end()) {
    std::rotate(s.programs.begin(), known, known + 1);
    return *s.programs.front().graph;
  }
  const auto start = std::chrono::steady_clock::now();
  DeviceState& device = context->device(s.guards[0].device->name());
  GraphOptions how = graph_options(options);
  how.over = over;
  const TraceAt trace_at = [&](const std::vector<ir::Type>& other) {
    return traced_at(args, other, context, where);
  };
  bool shares_kernels = false;
  try {
    Program fresh{over, nullptr};
    if (!options.dynamic.empty()) {
      const std::vector<ir::Type> types = types_of(args);
      check_dynamic(options.dynamic, types, where);
      const SizeFamily::Others others =
          reads_shapes ? recorded_sizes(s) : imagined_sizes(trace_at, types, options.dynamic);
      fresh.graph = compile_for_sizes(device, *s.recorded, others, how, s.dynamic);
      if (reads_shapes) s.dynamic += "; each size is lowered, as the function reads shapes";
      shares_kernels = fresh.graph != nullptr;
    }
    if (!fresh.graph) fresh.graph = compile_graph(device, *s.recorded, how);
    s.programs.insert(s.programs.begin(), std::move(fresh));
  } catch (...) {
    if (s.programs.empty())
      std::erase_if(specialisations, [&](const auto& known_one) { return known_one.get() == &s; });
    throw;
  }
  if (s.programs.size() > kMostPrograms) s.programs.pop_back();
  const bool may_range = over.empty() && options.donate.empty() && !options.max_autotune && !reads_shapes;
  if (shares_kernels && s.programs.size() == 1 && may_range) {
    open_range(s, history, device, trace_at, options.dynamic, how);
    // Those for single sizes that it serves are done with.
    std::erase_if(specialisations,
                  [&](const auto& other) { return other.get() != &s && replaces(s, *other); });
  }
  const double ms = ms_since(start);
  const runtime::BuildTimes built = s.programs.front().graph->executable->take_build_times();
  s.times.print_ms += built.print_ms;
  s.times.compiler_ms += built.compiler_ms;
  s.times.load_ms += built.load_ms;
  s.times.passes_ms += ms - built.print_ms - built.compiler_ms - built.load_ms;
  s.compile_ms += ms;
  return *s.programs.front().graph;
}

namespace {

// Arguments, then what the function captured, of which seeds are drawn anew.
std::vector<Tensor> graph_inputs(const Specialisation& s, const std::vector<Tensor>& args,
                                 const std::shared_ptr<ContextState>& context, const Location& where) {
  check_given("compile", "captured tensor", s.captured, where);
  std::vector<Tensor> inputs = args;
  inputs.insert(inputs.end(), s.captured.begin(), s.captured.end());
  for (std::size_t i : s.draws) inputs[i] = draw_seed(context, s.guards[0].device);
  return inputs;
}

}  // namespace

std::vector<Tensor> CompiledCore::call(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  if (at_place(where, [&] { return recording_trace(*context, args); }))
    return at_place(where,
                    [&] { return state_->run_function(args); });  // part of the enclosing function's graph
  for (const Tensor& a : args)
    if (a.impl()->device != args[0].impl()->device)
      throw Error("compile: arguments are " + apart(*args[0].impl()->device, *a.impl()->device), where);
  if (outermost_compile(*context)) {  // of another device: this one cannot be part of it
    const Aside aside(context, "call on " + args[0].device(), args, {}, where);
    return call(args, where);
  }
  using Sizes = State::Sizes;
  const auto find = [&] {
    return at_place(where, [&] {
      return state_->find(args, context, where, context->recording ? Sizes::alone : Sizes::of_a_range);
    });
  };
  Specialisation* s = find();
  // Inside another function that is being recorded this one may capture its values, or draw random numbers
  // that belong to it: whether it does is seen by recording.
  if ((s && !s->recorded) || context->recording) {
    Recorded recorded = state_->record(args, types_of(args), context, where);
    std::vector<Break> breaks = recorded.trace->breaks;
    std::vector<Tensor> results =
        at_place(where, [&] { return run_rest(recorded, context, context->device(args[0].device())); });
    s = find();  // the function may have called itself
    if (s && !s->recorded) {
      s->breaks = std::move(breaks);
      s->pieces = std::move(recorded.trace->pieces);
    }
    return results;
  }
  std::vector<Tensor> ran;
  if (!s) s = at_place(where, [&] { return &state_->specialise(args, context, ran, where); });
  if (!s->recorded) return ran;  // of a function with graph breaks, which no argument is donated to
  const std::vector<int>& donated = state_->options.donate;
  CompiledGraph& graph = at_place(where, [&]() -> auto& {
    return state_->program(*s, Donation::wishes(donated, args.size()), args, context, where);
  });
  DeviceState& device = context->device(s->guards[0].device->name());
  const GraphOptions options = graph_options(state_->options);
  if (s->captured.empty() && s->checks.empty() && donated.empty())
    return run_graph(context, device, graph, args, options);
  const std::vector<Tensor> inputs = graph_inputs(*s, args, context, where);
  std::vector<Tensor> results = at_place(where, [&] {
    const Donation donation(donated, inputs, args.size());
    std::vector<Tensor> out = run_graph(context, device, graph, inputs, options, donation.outputs(graph));
    donation.spend(where);
    return out;
  });
  settle(s->checks, results);
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
  std::optional<Aside> aside;
  std::vector<Tensor> own;  // the arguments, where one is of a recording
  const auto recorded = [](const Tensor& a) { return a.impl()->trace != nullptr; };
  if (context->recording || std::any_of(arguments.begin(), arguments.end(), recorded)) {
    aside.emplace(context, "into()", arguments, outputs, where);
    own = apart_from_recordings(arguments);
  }
  const std::vector<Tensor>& args = aside ? own : arguments;
  using Sizes = State::Sizes;
  Specialisation* found = &state_->specialised(args, context, where, Sizes::of_a_range);
  if (found->range && writes_over(outputs, args, found->captured))
    found = &state_->specialised(args, context, where, Sizes::alone);
  Specialisation& s = *found;
  const std::shared_ptr<runtime::Device>& device = args[0].impl()->device;
  const std::vector<ir::Type> types = s.range ? s.graph()->outputs : output_types(*s.recorded);
  const std::size_t count = types.size() - 2 * s.checks.size();
  if (outputs.size() != count)
    throw Error(fmt::format("into: {} outputs given, the function has {}", outputs.size(), count), where);
  check_outputs(outputs, types, *device, where);
  const std::vector<Tensor> inputs = graph_inputs(s, args, context, where);
  CompiledGraph& graph = at_place(where, [&]() -> auto& {
    return state_->program(s, overwrites(outputs, inputs), args, context, where);
  });
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
Specialisation& CompiledCore::State::specialised(const std::vector<Tensor>& args,
                                                 const std::shared_ptr<ContextState>& context,
                                                 const Location& where, Sizes sizes) {
  if (context->recording)
    throw Error("a function that is recorded has no values to run this with: call it outside", where);
  return at_place(where, [&]() -> auto& {
    Specialisation* s = find(args, context, where, sizes);
    std::vector<Tensor> ran;
    if (!s) s = &specialise(args, context, ran, where);
    if (!s->recorded)
      throw Error(
          "the function has graph breaks, so it is no single program: explain() names the lines. Call it "
          "and use what it returns");
    return *s;
  });
}

CompiledCall CompiledCore::prepare(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  Specialisation& s = state_->specialised(args, context, where, State::Sizes::of_a_range);
  if (s.programs.empty())
    at_place(where, [&] {
      state_->program(s, Donation::wishes(state_->options.donate, args.size()), args, context, where);
    });
  const std::uint64_t drawn = context->random_calls;
  CompiledCall call{s.graph(), graph_inputs(s, args, context, where), s.draws.size(), 2 * s.checks.size()};
  context->random_calls = drawn;
  return call;
}

void CompiledCore::edit(std::size_t kernel, const std::string& source, const std::vector<Tensor>& args,
                        const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "edit", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);  // nobody else gives the program other sizes
  const CompiledCall call = prepare(args, where);
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
  state_->find(args, context, where)->programs.front().graph = std::move(own);
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
    std::recursive_mutex gone;
    const std::scoped_lock lock(state_->mutex, context ? context->mutex : gone);
    out.push_back(report_of(*s, state_->options));
  }
  return out;
}

std::string CompiledCore::explain() const { return tilewright::explain(report()); }

}  // namespace tilewright::detail
