// A compiled function's specialisations: found, made, and given the programs that calls run.
#include "tensor/compiled_state.h"

#include "ops/checkpoint.h"
#include "tensor/in_place.h"
#include "tensor/memory_budget.h"
#include "tensor/precision_text.h"
#include "tensor/trace.h"

#include <tilewright/base/clock.h>

#include <algorithm>
#include <chrono>

namespace tilewright::detail {

namespace {

bool is_checkpointed(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& n) { return n.op == &ops::kCheckpoint; });
}

}  // namespace

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

// Traces the function; with graph breaks runs it as well and leaves its results in `ran`.
std::shared_ptr<Specialisation> CompiledCore::State::specialise(const std::vector<Tensor>& args,
                                                                const std::shared_ptr<ContextState>& context,
                                                                Sizes sizes, std::optional<Leaves>& ran,
                                                                const Location& where) {
  const auto start = std::chrono::steady_clock::now();
  check_precision(options.precision, where);
  Donation::wishes(options.donate, args.size(), arguments());  // throws
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
  fresh->reason = recompile_reason(specialisations, guards, arguments());
  fresh->context = context;
  fresh->guards = std::move(guards);
  fresh->breaks = trace.breaks;
  fresh->structure = recorded.structure;
  if (!trace.breaks.empty()) {
    ran.emplace(run_rest(recorded, context, device), recorded.structure);
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
SizeFamily::Others CompiledCore::State::recorded_sizes(const Specialisation& s,
                                                       const std::vector<DynamicDim>& dynamic) const {
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
        are_alike(types, types_of_guards(*other), dynamic))
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
  std::vector<DynamicDim> dynamic;
  std::string shared;
  bool shares_kernels = false;
  try {
    const std::vector<ir::Type> types = types_of(args);
    dynamic = with_axes_from_0(options.dynamic, types, where);
    if (!dynamic.empty() && options.memory_budget != 0) {
      shared = "kernels for these sizes alone: each size has a plan of its own within memory_budget";
    } else if (!dynamic.empty() && is_checkpointed(*s.recorded)) {
      shared =
          "kernels for these sizes alone: each size has a plan of its own for what checkpoint() makes again";
    } else if (!dynamic.empty()) {
      const SizeFamily::Others others =
          reads_shapes ? recorded_sizes(s, dynamic) : imagined_sizes(trace_at, types, dynamic);
      graph = compile_for_sizes(device, *s.recorded, others, how, shared);
      if (reads_shapes)
        shared +=
            "; each size is recorded and planned anew, as the function, or one that it calls, as "
            "causal_mask(), asks for shape() or size()";
    }
    shares_kernels = graph != nullptr;
    const Unlocked unlocked = [&](const std::function<void()>& work) {
      ++opened;
      const Opened open(mutex, context->mutex);
      work();
    };
    if (!graph) graph = compile_graph(device, *s.recorded, how, unlocked);
  } catch (...) {
    if (s.programs.empty())
      std::erase_if(specialisations, [&](const auto& known_one) { return known_one.get() == &s; });
    try {
      throw;
    } catch (const OverBudget& e) {
      throw OverBudget(e, where);
    }
  }
  // Another thread has compiled it meanwhile, or lets it serve other sizes.
  if (s.range || known()) return graph;
  s.programs.insert(s.programs.begin(), {over, graph});
  if (s.programs.size() > kMostPrograms) s.programs.pop_back();
  s.dynamic = std::move(shared);
  const bool may_range = over.empty() && options.donate.empty() && !options.max_autotune && !reads_shapes;
  const bool is_kept = std::any_of(specialisations.begin(), specialisations.end(),
                                   [&](const auto& k) { return k.get() == &s; });
  if (shares_kernels && s.programs.size() == 1 && may_range && is_kept) {
    open_range(s, history, device, trace_at, dynamic, how);
    // Specialisations for single sizes that the range serves are done with.
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

}  // namespace tilewright::detail
