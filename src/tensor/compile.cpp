// Compiled functions: calls, and what is told of them.
#include "ir/text.h"
#include "runtime/outputs_apart.h"
#include "tensor/compiled_state.h"
#include "tensor/explain.h"
#include "tensor/in_place.h"
#include "tensor/index_check.h"
#include "tensor/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace tilewright::detail {

CompiledCore::CompiledCore(LeavesFunction function, Structure structure, CompileOptions options,
                           std::vector<std::string> names)
    : state_(std::make_unique<State>()) {
  state_->function = std::move(function);
  state_->structure = std::move(structure);
  state_->options = std::move(options);
  state_->names = std::move(names);
}
CompiledCore::~CompiledCore() = default;

namespace {

// Arguments, then what the function captured, with seeds that are drawn anew.
std::vector<Tensor> graph_inputs(const Specialisation& s, const std::vector<Tensor>& args,
                                 const std::shared_ptr<ContextState>& context, const Location& where) {
  check_kept("compile", {"captured tensor"}, s.captured, where);
  std::vector<Tensor> inputs = args;
  inputs.insert(inputs.end(), s.captured.begin(), s.captured.end());
  for (std::size_t i : s.draws) inputs[i] = draw_seed(context, s.guards[0].device);
  return inputs;
}

}  // namespace

Leaves CompiledCore::call(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, state_->arguments(), where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  check_kept("compile", state_->arguments(), args, where);
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
      return state_->ready(args, context, where, [&](const Specialisation&) {
        return Donation::wishes(donated, args.size(), state_->arguments());
      });
    });
  if (ready.ran)
    return std::move(*ready.ran);  // of a function with graph breaks, which nothing is donated to
  // Inside another function that is being recorded this one may capture its values, or draw random numbers
  // that belong to it: whether it does is seen by recording.
  if (!ready.graph) {
    Recorded recorded = state_->record(args, types_of(args), context, where);
    std::vector<Break> breaks = recorded.trace->breaks;
    Leaves results{
        at_place(where, [&] { return run_rest(recorded, context, context->device(args[0].device())); }),
        recorded.structure};
    if (const auto s = state_->find_alone(args); s && !s->recorded) {
      s->breaks = std::move(breaks);
      s->pieces = std::move(recorded.trace->pieces);
    }
    return results;
  }
  // While the function was recorded another thread may have given an argument away.
  check_kept("compile", state_->arguments(), args, where);
  const Specialisation& s = *ready.s;
  CompiledGraph& graph = *ready.graph;
  DeviceState& device = context->device(s.guards[0].device->name());
  const GraphOptions options = graph_options(state_->options);
  if (s.captured.empty() && s.checks.empty() && donated.empty())
    return {run_graph(context, device, graph, args, options), s.structure};
  const std::vector<Tensor> inputs = graph_inputs(s, args, context, where);
  std::vector<Tensor> results = at_place(where, [&] {
    const Donation donation(donated, inputs, args.size(), state_->arguments());
    std::vector<Tensor> out = run_graph(context, device, graph, inputs, options, donation.outputs(graph));
    donation.spend(where);
    return out;
  });
  settle(s.checks, results);
  return {std::move(results), s.structure};
}

namespace {

// An output has a function's type, memory, and is not another output.
void check_outputs(const std::vector<Tensor>& outputs, const Specialisation& s, const runtime::Device& device,
                   const Location& where) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorImpl& t = *outputs[i].impl();
    if (t.device->name() == device.name() && t.device.get() != &device)
      throw Error(
          fmt::format("into: output {} is of another Context: make it by the one of the arguments", i),
          where);
    if (!(t.type == s.output(i)) || t.device.get() != &device)
      throw Error(fmt::format("into: output {} must be {} on {}, it is {} on {}", i, to_string(s.output(i)),
                              device.name(), to_string(t.type), t.device->name()),
                  where);
    if (t.buffer->is_read_only())
      throw Error(fmt::format("into: output {} is borrowed memory that is read-only", i), where);
    for (std::size_t k = 0; k < i; ++k)
      if (outputs[k].impl()->buffer->overlaps(*t.buffer))
        throw Error(fmt::format("into: outputs {} and {} {}", k, i,
                                outputs[k].impl()->buffer->is_same_memory(*t.buffer)
                                    ? "are the same tensor"
                                    : "share a part of their memory: each must have its own"),
                    where);
  }
}

}  // namespace

void CompiledCore::call_into(const std::vector<Tensor>& outputs, const Structure* structure,
                             const std::vector<Tensor>& arguments, const Location& where) {
  check_arguments("into", arguments, state_->arguments(), where);
  check_given("into", {"output"}, outputs, where);
  const std::shared_ptr<ContextState> context = context_of(arguments[0], "into", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  check_kept("into", state_->arguments(), arguments, where);
  check_kept("into", {"output"}, outputs, where);
  const Aside aside(context, "into()", arguments, outputs, where);
  std::vector<Tensor> apart;
  const bool recorded =
      std::any_of(arguments.begin(), arguments.end(), [](const Tensor& a) { return a.impl()->trace; });
  if (recorded) apart = apart_from_recordings(arguments);
  const std::vector<Tensor>& args = recorded ? apart : arguments;
  const std::shared_ptr<runtime::Device>& device = args[0].impl()->device;
  std::size_t count = 0;
  const State::Ready ready = state_->as_one_program(args, context, where, [&](const Specialisation& s) {
    count = s.outputs() - 2 * s.checks.size();
    if (outputs.size() != count)
      throw Error(fmt::format("into: {} outputs given, the function has {}", outputs.size(), count), where);
    if (structure != nullptr && *structure != s.structure)
      throw Error(
          "into: the outputs are not built as the results are: lists of other lengths, an optional that is "
          "there or not, or another number",
          where);
    check_outputs(outputs, s, *device, where);
    // While the function was recorded another thread may have given these away.
    check_kept("into", state_->arguments(), arguments, where);
    check_kept("into", {"output"}, outputs, where);
    check_kept("compile", {"captured tensor"}, s.captured, where);
    return overwrites(outputs, args, s.captured);
  });
  Specialisation& s = *ready.s;
  CompiledGraph& graph = *ready.graph;
  std::vector<Tensor> more;
  if (!s.captured.empty()) more = graph_inputs(s, args, context, where);
  const std::vector<Tensor>& inputs = s.captured.empty() ? args : more;
  OutputMemory memory = at_place(where, [&] {
    return OutputMemory(outputs, args.size(), graph.compiled.overwriting, state_->arguments());
  });
  std::vector<std::shared_ptr<runtime::Buffer>> in, out = memory.buffers();
  in.reserve(inputs.size());
  for (const Tensor& t : inputs) in.push_back(t.impl()->buffer);
  std::vector<Tensor> checked;
  for (std::size_t i = count; i < s.outputs(); ++i) {
    out.push_back(allocate(device, s.output(i)));
    checked.push_back(make_tensor(context, s.output(i), device, out.back()));
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
    return s.programs.empty() ? Donation::wishes(options.donate, args.size(), arguments())
                              : s.programs.front().over;
  });
}

CompiledCall CompiledCore::prepare(const std::vector<Tensor>& args, const Location& where) {
  check_arguments("compile", args, state_->arguments(), where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "compiled function", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  check_kept("compile", state_->arguments(), args, where);
  const State::Ready ready = state_->prepared(args, context, where);
  check_kept("compile", state_->arguments(), args, where);
  const Specialisation& s = *ready.s;
  const std::uint64_t drawn = context->random_calls;
  CompiledCall call{ready.graph, graph_inputs(s, args, context, where), s.draws.size(), 2 * s.checks.size()};
  context->random_calls = drawn;
  return call;
}

void CompiledCore::edit(std::size_t kernel, const std::string& source, const std::vector<Tensor>& args,
                        const Location& where) {
  check_arguments("compile", args, state_->arguments(), where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "edit", where);
  const std::scoped_lock lock(state_->mutex, context->mutex);
  check_kept("compile", state_->arguments(), args, where);
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
  check_arguments("compile", args, state_->arguments(), where);
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

SpecialisationReport report_of(const Specialisation& s, const CompileOptions& options,
                               const GivenNames& arguments) {
  SpecialisationReport r;
  // More arguments than this, as a model's parameters are, are shown by so many at either end.
  constexpr std::size_t kMostShown = 16, kAtEnds = 3;
  const std::size_t count = s.guards.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string guard =
        fmt::format("{} on {}", to_string(s.guards[i].type), s.guards[i].device->name());
    r.key += (i == 0 ? "" : ", ") + guard;
    if (count <= kMostShown || i < kAtEnds || i >= count - kAtEnds)
      r.arguments += (i == 0 ? "" : ", ") + guard;
    if (count > kMostShown && i == kAtEnds) r.arguments += ", …";
  }
  if (count > kMostShown) r.arguments += fmt::format(" ({} arguments)", count);
  r.reason = s.reason;
  r.dynamic = s.dynamic;
  r.compile_ms = s.compile_ms;
  r.times = s.times;
  r.draws = static_cast<int>(s.draws.size());
  r.captured = static_cast<int>(s.captured.size() - s.draws.size());
  if (s.recorded) r.graph = ir::print(*s.recorded);
  for (const Break& b : s.breaks)
    r.breaks.push_back(fmt::format("{} at {}{}", b.what, b.location,
                                   b.cost_ms > 0 ? fmt::format(", {:.3f} ms", b.cost_ms) : ""));
  r.in_place = s.in_place;
  if (const auto graph = s.graph();
      graph && s.programs[0].over == Donation::wishes(options.donate, s.guards.size(), arguments))
    r.in_place = Donation::lines(graph->compiled.overwriting, arguments);
  if (const auto graph = s.graph()) describe(*graph, options.precision, r);
  for (const Piece& piece : s.pieces) {
    r.graph += piece.traced;
    describe(*piece.graph, options.precision, r);
  }
  return r;
}

}  // namespace

List<SpecialisationReport> CompiledCore::report() const {
  std::vector<std::shared_ptr<Specialisation>> all;
  {
    const std::lock_guard lock(state_->mutex);
    all = state_->specialisations;
  }
  List<SpecialisationReport> out;
  for (const std::shared_ptr<Specialisation>& s : all) {
    // Other functions of the Context that have the same graph may measure and tune it meanwhile.
    const std::shared_ptr<ContextState> context = s->context.lock();
    OpenMutex gone;
    const std::scoped_lock lock(state_->mutex, context ? context->mutex : gone);
    out.push_back(report_of(*s, state_->options, state_->arguments()));
  }
  return out;
}

}  // namespace tilewright::detail