// Compiled functions: tracing once per key, guards, graph breaks, and the calls after that.
#include "ir/text.h"
#include "runtime/outputs_apart.h"
#include "tensor/dynamic.h"
#include "tensor/explain.h"
#include "tensor/in_place.h"
#include "tensor/index_check.h"
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

// What a specialisation was made for.
struct Guard {
  ir::Type type;
  std::shared_ptr<runtime::Device> device;  // of one Context: another has its own, of the same name
  friend bool operator==(const Guard&, const Guard&) = default;
};

}  // namespace

// The function's graph as it was compiled for a way of calling it.
struct Program {
  std::vector<passes::Overwrite> over;  // what it was to write over its inputs
  std::shared_ptr<CompiledGraph> graph;
};

struct Specialisation {
  std::weak_ptr<ContextState> context;  // what was compiled goes when it has gone
  std::vector<Guard> guards;
  std::string reason;
  std::optional<ir::Graph>
      recorded;  // nothing where the function reads values on the host: then it is traced at each call
  std::vector<Program> programs;     // of it, the one called last first
  std::vector<Tensor> captured;      // tensors with memory that the function used beside its arguments
  std::vector<std::size_t> draws;    // which of the graph's inputs are seeds, drawn at each call
  std::vector<PendingCheck> checks;  // what the last outputs of the graph tell
  std::vector<Break> breaks;
  std::vector<Piece> pieces;          // of the last call, where there are breaks
  std::string traced;                 // the graph as written
  std::string dynamic;                // what came of the dynamic dimensions
  std::vector<std::string> in_place;  // of the last into() that wrote its outputs over what it reads
  double compile_ms = 0;
  CompileTimes times;
  std::shared_ptr<CompiledGraph> graph() const { return programs.empty() ? nullptr : programs[0].graph; }
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

  std::shared_ptr<Specialisation> find(const std::vector<Tensor>& args);
  std::shared_ptr<Specialisation> specialise(const std::vector<Tensor>& args,
                                             const std::shared_ptr<ContextState>& context,
                                             std::vector<Tensor>& ran, const Location& where);
  CompiledGraph& program(Specialisation& s, const std::vector<passes::Overwrite>& over,
                         const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                         const Location& where);
  std::vector<Tensor> run_function(const std::vector<Tensor>& args,
                                   const std::shared_ptr<ContextState>& context);
  Recorded record(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                  const std::shared_ptr<ContextState>& context, const Location& where,
                  const std::string& no_breaks = "");
};

CompiledCore::CompiledCore(ManyFunction function, CompileOptions options)
    : state_(std::make_unique<State>(std::move(function), std::move(options))) {}
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

std::string recompile_reason(const std::vector<std::shared_ptr<Specialisation>>& known,
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

std::vector<Guard> guards_of(const std::vector<Tensor>& args) {
  std::vector<Guard> guards;
  guards.reserve(args.size());
  for (const Tensor& a : args) guards.push_back({a.impl()->type, a.impl()->device});
  return guards;
}

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
  std::vector<Tensor> results = [&] {
    const Opened open(mutex, context->mutex);
    return function(args);
  }();
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

// The specialisation for these arguments; null where there is none.
std::shared_ptr<Specialisation> CompiledCore::State::find(const std::vector<Tensor>& args) {
  auto& known = specialisations;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!matches(*known[i], args)) continue;
    const auto at = known.begin() + static_cast<std::ptrdiff_t>(i);
    if (i != 0) std::rotate(known.begin(), at, at + 1);
    return known.front();
  }
  return nullptr;
}

// Traces the function; with graph breaks runs it as well and leaves its results in `ran`.
std::shared_ptr<Specialisation> CompiledCore::State::specialise(const std::vector<Tensor>& args,
                                                                const std::shared_ptr<ContextState>& context,
                                                                std::vector<Tensor>& ran,
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
    if (std::shared_ptr<Specialisation> other = find(args); other && other->recorded)
      return other;  // another thread has recorded it meanwhile
    fresh->traced = ir::print(trace.graph);
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
  return specialisations.front();
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
  try {
    Program fresh{over, nullptr};
    if (options.dynamic.empty()) {
      fresh.graph = compile_graph(device, *s.recorded, how);
    } else {
      const std::vector<ir::Type> types = types_of(args);
      check_dynamic(options.dynamic, types, where);
      const auto trace_at = [&](const std::vector<ir::Type>& other) {
        // Its values are of other sizes than the arguments' memory: none of them can be computed.
        const std::uint64_t drawn = context->random_calls;
        Recorded again = record(args, other, context, where, "traced for other sizes");
        context->undraw(drawn, again.trace->draws.size());
        finish(again);
        return again.trace->graph;
      };
      fresh.graph = compile_for_sizes(device, *s.recorded, trace_at, types, options.dynamic, how, s.dynamic);
      if (!fresh.graph) fresh.graph = compile_graph(device, *s.recorded, how);
    }
    s.programs.insert(s.programs.begin(), std::move(fresh));
  } catch (...) {
    if (s.programs.empty())
      std::erase_if(specialisations, [&](const auto& known_one) { return known_one.get() == &s; });
    throw;
  }
  if (s.programs.size() > kMostPrograms) s.programs.pop_back();
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
  std::shared_ptr<Specialisation> s = state_->find(args);
  // Inside another function that is being recorded this one may capture its values, or draw random numbers
  // that belong to it: whether it does is seen by recording.
  if ((s && !s->recorded) || context->recording()) {
    Recorded recorded = state_->record(args, types_of(args), context, where);
    std::vector<Break> breaks = recorded.trace->breaks;
    std::vector<Tensor> results =
        at_place(where, [&] { return run_rest(recorded, context, context->device(args[0].device())); });
    s = state_->find(args);
    if (s && !s->recorded) {
      s->breaks = std::move(breaks);
      s->pieces = std::move(recorded.trace->pieces);
    }
    return results;
  }
  std::vector<Tensor> ran;
  if (!s) s = at_place(where, [&] { return state_->specialise(args, context, ran, where); });
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
  const Aside aside(context, "into()", arguments, outputs, where);
  const std::vector<Tensor> args = apart_from_recordings(arguments);
  const std::shared_ptr<Specialisation> kept = specialised(args, context, where);
  Specialisation& s = *kept;
  const std::shared_ptr<runtime::Device>& device = args[0].impl()->device;
  const std::vector<ir::Type> types = output_types(*s.recorded);
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
std::shared_ptr<Specialisation> CompiledCore::specialised(const std::vector<Tensor>& args,
                                                          const std::shared_ptr<ContextState>& context,
                                                          const Location& where) {
  if (context->recording())
    throw Error("a function that is recorded has no values to run this with: call it outside", where);
  std::shared_ptr<Specialisation> s = state_->find(args);
  std::vector<Tensor> ran;
  if (!s) s = at_place(where, [&] { return state_->specialise(args, context, ran, where); });
  if (!s->recorded)
    throw Error(
        "the function has graph breaks, so it is no single program: explain() names the lines. Call it "
        "and use what it returns",
        where);
  return s;
}

CompiledCall CompiledCore::prepare(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  const std::shared_ptr<Specialisation> kept = specialised(args, context, where);
  Specialisation& s = *kept;
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
  const CompiledCall call = prepare(args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "edit", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
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
  state_->find(args)->programs.front().graph = std::move(own);
}

void CompiledCore::measure(const std::vector<Tensor>& args, const Location& where) {
  const CompiledCall call = prepare(args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "measure", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
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
  r.graph = s.traced;
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
