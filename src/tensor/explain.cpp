// explain(): kernels with their floors, guards, recompiles, and why neighbours were not fused.
#include "tensor/explain.h"

#include "base/safe_file.h"
#include "ir/op.h"
#include "ir/text.h"
#include "runtime/measured_target.h"
#include "tensor/precision_text.h"

#include <tilewright/perf/cost.h>
#include <tilewright/perf/roofline.h>
#include <tilewright/tile/cost.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tilewright {

KernelReport::KernelReport() = default;
KernelReport::KernelReport(const KernelReport&) = default;
KernelReport::KernelReport(KernelReport&&) noexcept = default;
KernelReport& KernelReport::operator=(const KernelReport&) = default;
KernelReport& KernelReport::operator=(KernelReport&&) noexcept = default;
KernelReport::~KernelReport() = default;

SpecialisationReport::SpecialisationReport() = default;
SpecialisationReport::SpecialisationReport(const SpecialisationReport&) = default;
SpecialisationReport::SpecialisationReport(SpecialisationReport&&) noexcept = default;
SpecialisationReport& SpecialisationReport::operator=(const SpecialisationReport&) = default;
SpecialisationReport& SpecialisationReport::operator=(SpecialisationReport&&) noexcept = default;
SpecialisationReport::~SpecialisationReport() = default;

}  // namespace tilewright

namespace tilewright::detail {

namespace {

std::string ops_text(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) {
  std::string text;
  for (ir::NodeId id : nodes) text += (text.empty() ? "" : " ") + std::string(graph.node(id).op->name);
  return text;
}

// The launch of a kernel in the plan; each is launched by one step.
std::size_t step_of(const tile::Plan& plan, std::size_t kernel) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].kernel == static_cast<int>(kernel)) return s;
  TW_CHECK(false, "every kernel of a plan is launched");
  return 0;
}

// The least time of a kernel's own work: its stored ceilings, else the target's rules of thumb.
void set_floor(const CompiledGraph& g, const perf::Cost& work, KernelReport& r) {
  const perf::Hardware ceilings = g.ceilings ? *g.ceilings : runtime::rules_of_thumb(g.compiled.target);
  // Between two calls the bytes lie where they fit.
  const perf::Bounds b = perf::bounds(work, perf::holding(ceilings, work.bytes()));
  r.floor_us = 1e6 * b.lower_s;
  r.bound = b.limit == perf::Limit::memory ? perf::level_holding(ceilings, work.bytes())
                                           : std::string(perf::name(b.limit));
}

// What became of f32 products that may be tf32.
enum class Tf32 : unsigned char { not_allowed, not_used, used };
Tf32 tf32_of(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  bool allowed = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    allowed = allowed || op.precision == tile::DotPrecision::tf32;
  });
  const tile::DotUnit unit = dot_unit(schedule);
  const bool tensor_cores =
      unit == tile::DotUnit::mma || unit == tile::DotUnit::wgmma || is_library_call(schedule);
  return !allowed ? Tf32::not_allowed : tensor_cores ? Tf32::used : Tf32::not_used;
}

std::string note(const std::string& found, Tf32 tf32) {
  if (tf32 == Tf32::not_allowed) return found;
  return found + (found.empty() ? "" : "; ") +
         (tf32 == Tf32::used ? "f32 products as tf32: operands keep 10 bits of mantissa"
                             : "tf32 allowed and not used: its f32 products are exact");
}

bool adds_floats_by_atomics(const tile::Kernel& kernel) {
  bool found = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    found = found || (op.kind == tile::OpKind::atomic_add &&
                      is_float(kernel.views[static_cast<std::size_t>(op.param)].dtype));
  });
  return found;
}

KernelReport kernel_report(const CompiledGraph& g, std::size_t i, Precision precision) {
  const passes::Compiled::KernelInfo& info = g.compiled.kernels[i];
  const runtime::LoadedKernel& loaded = *g.executable->kernels()[i];
  const tile::Kernel& kernel = g.compiled.plan.kernels[i];
  const std::size_t step = step_of(g.compiled.plan, i);
  perf::Cost work = tile::cost(kernel, g.compiled.plan.steps[step].scalars);
  Tf32 tf32 = tf32_of(kernel, loaded.source.schedule);
  // Lowering does not ask for it where no unit of the device rounds so.
  if (tf32 == Tf32::not_allowed && precision == Precision::tf32 &&
      has_f32_product(g.compiled.graph, info.nodes))
    tf32 = Tf32::not_used;
  if (tf32 == Tf32::used) work.tf32 = work.matrix[DType::f32];
  KernelReport r;
  r.name = kernel.name;
  r.ops = ops_text(g.compiled.graph, info.nodes);
  r.flops = work.flops();
  r.bytes = work.bytes();
  r.cost = work;
  set_floor(g, work, r);
  if (g.times) r.measured_us = g.times->step_us[step];
  r.predicted_us = loaded.predicted_us;
  r.build_ms = loaded.build_ms;
  r.origin = loaded.origin == runtime::LoadedKernel::Origin::disk ? "disk" : "compiled";
  r.schedule = to_string(loaded.source.schedule);
  if (const auto* call = std::get_if<tile::LibraryCall>(&loaded.source.schedule.kind)) r.called = call->name;
  r.tiles = is_library_call(loaded.source.schedule) ? "" : runtime::tiles_of(kernel);
  for (const backends::Candidate& c : loaded.candidates)
    if (c.refusal.empty()) ++r.schedules;
  for (const backends::Candidate& c : loaded.candidates)
    if (!c.refusal.empty()) r.refused.push_back(fmt::format("{}: {}", to_string(c.schedule), c.refusal));
  r.source = loaded.source.text;
  r.target = g.compiled.target.kind;
  r.key = to_hex(loaded.key);
  r.note = note(info.note, tf32);
  if (precision != Precision::f32) r.types = types_text(g.compiled.graph, info.nodes);
  if (adds_floats_by_atomics(kernel))
    r.note += (r.note.empty() ? "" : "; ") + std::string("adds floats in no fixed order, by atomics");
  r.tile = tile::print(kernel);
  return r;
}

std::vector<std::string> tuning_text(const runtime::KernelTuning& tuning) {
  if (tuning.stored)
    return {fmt::format("the stored winner of its shape bucket, found in {:.1f} ms", tuning.ms)};
  std::vector<std::string> lines;
  lines.reserve(tuning.trials.size());
  for (const runtime::Trial& t : tuning.trials)
    lines.push_back(fmt::format(
        "{}{}{}{} {}", to_string(t.schedule), t.tiles.empty() ? "" : " ", t.tiles,
        is_library_call(t.schedule) ? "" : fmt::format(" predicted {:.2f} us,", t.predicted_us),
        t.failure.empty() ? fmt::format("measured {:.2f} us", t.measured_us) : "failed: " + t.failure));
  return lines;
}

double copied_bytes(const tile::Plan& plan) {
  double bytes = 0;
  for (const tile::PlanStep& step : plan.steps) {
    if (step.kind != tile::PlanStep::Kind::copy) continue;
    const tile::PlanBuffer& to = plan.buffers[static_cast<std::size_t>(step.buffer)];
    bytes += 2 * static_cast<double>(to.elements) * static_cast<double>(size_bytes(to.dtype));
  }
  return bytes;
}

// What the copies of a call take at least, beside its kernels.
double copy_floor_us(const CompiledGraph& g, double bytes) {
  const perf::Cost work{.bytes_read = bytes / 2, .bytes_written = bytes / 2};
  const perf::Hardware ceilings = g.ceilings ? *g.ceilings : runtime::rules_of_thumb(g.compiled.target);
  return 1e6 * perf::bounds(work, perf::holding(ceilings, bytes)).lower_s;
}

// The launches of one kernel: what each of them took, where that was measured.
struct Launches {
  int count = 0;
  double sum_us = 0, least_us = 0, most_us = 0;
  void add(double us) {
    least_us = count == 0 ? us : std::min(least_us, us);
    most_us = std::max(most_us, us);
    sum_us += us;
    ++count;
  }
};

std::string kernel_text(const KernelReport& k, const Launches& all) {
  std::string out = fmt::format("  kernel {}: {}", k.name, k.ops);
  out += all.count > 1 ? fmt::format(" ({} launches, each:)\n", all.count) : "\n";
  out += fmt::format("    {}B, {}FLOP, floor {:.2f} us ({})", perf::with_prefix(k.bytes),
                     perf::with_prefix(k.flops), k.floor_us, k.bound);
  if (k.predicted_us > 0) out += fmt::format(", predicted {:.2f} us", k.predicted_us);
  if (all.sum_us > 0) {
    const double mean_us = all.sum_us / all.count;
    out += fmt::format(", measured {:.2f} us", mean_us);
    if (all.count > 1) out += fmt::format(" ({:.2f} to {:.2f})", all.least_us, all.most_us);
    out += fmt::format(": {:.0f} % of the floor's speed", 100 * k.floor_us / mean_us);
  }
  out += fmt::format("; {} in {:.2f} ms\n", k.origin, k.build_ms);
  out += fmt::format("    schedule {}{}{}", k.schedule, k.tiles.empty() ? "" : " ", k.tiles);
  if (k.tuning.empty() && k.schedules > 0)
    out += fmt::format(": the least predicted time of {}", k.schedules);
  out += "\n";
  if (!k.types.empty()) out += fmt::format("    types: {}\n", k.types);
  if (!k.note.empty()) out += fmt::format("    {}\n", k.note);
  if (!k.library.empty()) out += fmt::format("    library: {}\n", k.library);
  for (const std::string& t : k.tuning) out += fmt::format("    tuned: {}\n", t);
  for (const std::string& why : k.refused) out += fmt::format("    refused: {}\n", why);
  return out;
}

// Launches of one program for the same work, as equal layers have, are told together.
std::string kernels_text(const std::vector<KernelReport>& kernels) {
  const auto work = [](const KernelReport& k) {
    return std::tie(k.key, k.ops, k.bytes, k.flops, k.floor_us, k.types, k.note, k.library, k.tuning);
  };
  std::vector<std::pair<const KernelReport*, Launches>> told;
  std::map<decltype(work(kernels[0])), std::size_t> places;  // in `told`
  for (const KernelReport& k : kernels) {
    const auto [place, is_new] = places.try_emplace(work(k), told.size());
    if (is_new) told.push_back({&k, {}});
    told[place->second].second.add(k.measured_us);
  }
  std::string out;
  for (const auto& [kernel, launches] : told) out += kernel_text(*kernel, launches);
  return out;
}

// Pairs of the same operations that were refused for the same reason are told once.
void add_not_fused(const ir::Graph& graph, const std::vector<passes::NotFused>& pairs,
                   std::vector<std::string>& out) {
  std::map<std::tuple<const ir::Op*, const ir::Op*, std::string>, int> counts;
  const auto key = [&](const passes::NotFused& n) {
    return std::tuple{graph.node(n.producer).op, graph.node(n.consumer).op,
                      std::string(passes::explain(n.refusal))};
  };
  for (const passes::NotFused& n : pairs) ++counts[key(n)];
  for (const passes::NotFused& n : pairs) {
    const auto alike = counts.find(key(n));
    if (alike == counts.end()) continue;
    const auto& [producer, consumer, why] = alike->first;
    const std::string others = alike->second > 1 ? fmt::format(" ({} such pairs in all)", alike->second) : "";
    out.push_back(fmt::format("{} %{} and {} %{}{}: {}", producer->name, n.producer, consumer->name,
                              n.consumer, others, why));
    counts.erase(alike);
  }
}

}  // namespace

void describe(const CompiledGraph& g, Precision precision, SpecialisationReport& report) {
  for (std::size_t i = 0; i < g.compiled.kernels.size(); ++i) {
    report.kernels.push_back(kernel_report(g, i, precision));
    if (i < g.tuning.size()) {
      report.kernels.back().tuning = tuning_text(g.tuning[i]);
      report.kernels.back().library = g.tuning[i].library;
    }
    report.floor_us += report.kernels.back().floor_us;
  }
  report.replayed = g.replay.replays();
  report.direct_us = g.replay.direct_us();
  report.replay_us = g.replay.replay_us();
  const ir::Graph& graph = g.compiled.graph;
  if (precision != Precision::f32) {
    report.precision += report.precision.empty() ? "" : "; ";
    report.precision += precision_text(graph, precision);
  }
  add_not_fused(graph, g.compiled.fusion.not_fused, report.not_fused);
  if (!report.recomputing.empty() && !g.compiled.fusion.recomputing.empty()) report.recomputing += "; ";
  report.recomputing += g.compiled.fusion.recomputing;
  if (g.compiled.memory) {
    report.memory += report.memory.empty() ? "" : "; ";
    report.memory += passes::to_string(*g.compiled.memory);
  }
  report.fused += ir::print(graph);
  report.arena_bytes += g.compiled.plan.arena_bytes;
  if (const double copied = copied_bytes(g.compiled.plan); copied > 0) {
    report.copied_bytes += copied;
    report.floor_us += copy_floor_us(g, copied);
  }
  report.floor_source = g.ceilings ? g.ceilings->memory_bytes_per_s.source
                                   : "rules of thumb: run `tw devices --probe` for this machine's";
  if (g.times) report.measured_us = g.times->total_us;
}

std::vector<ir::Value> inline_graph(ir::Graph& into, const ir::Graph& graph,
                                    const std::vector<ir::Value>& inputs) {
  std::vector<ir::NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  const std::vector<bool> live = graph.live();
  std::size_t next_input = 0;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    auto& to = renamed[static_cast<std::size_t>(id)];
    if (n.op->kind == ir::OpClass::input) {
      to = inputs[next_input++].id;
    } else if (live[static_cast<std::size_t>(id)]) {
      std::vector<ir::NodeId> operands;
      operands.reserve(n.operands.size());
      for (ir::NodeId o : n.operands) operands.push_back(renamed[static_cast<std::size_t>(o)]);
      to = into.add(*n.op, operands, n.attrs, n.location);
    }
  }
  std::vector<ir::Value> out;
  for (ir::NodeId o : graph.outputs()) out.push_back({&into, renamed[static_cast<std::size_t>(o)]});
  return out;
}

ListFunction graph_function(ir::Graph graph) {
  return [graph = std::make_shared<const ir::Graph>(std::move(graph))](const std::vector<Tensor>& args) {
    if (args.size() != graph->inputs().size())
      throw Error(fmt::format("graph @{}: {} arguments given, it takes {}", graph->name(), args.size(),
                              graph->inputs().size()));
    return apply(
        "graph", args,
        [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
          // The arguments are called as the graph's own inputs.
          for (std::size_t i = 0; i < inputs.size(); ++i)
            if (into.node(inputs[i].id).op->kind == ir::OpClass::input)
              into.rename_input(inputs[i].id, graph->node(graph->inputs()[i]).name);
          return inline_graph(into, *graph, inputs);
        },
        Location::current());
  };
}

}  // namespace tilewright::detail

namespace tilewright {

std::string_view name(Stage stage) {
  switch (stage) {
    case Stage::graph:
      return "graph";
    case Stage::fused:
      return "fused";
    case Stage::tile:
      return "tile";
    case Stage::source:
      return "source";
  }
  return "?";
}

std::string stage_text(const SpecialisationReport& report, Stage stage) {
  if (stage == Stage::graph) return report.graph;
  if (stage == Stage::fused) {
    std::string text = report.fused;
    for (const KernelReport& k : report.kernels) text += fmt::format("// kernel {}: {}\n", k.name, k.ops);
    return text;
  }
  std::string text;
  for (const KernelReport& k : report.kernels) text += stage == Stage::tile ? k.tile : k.source;
  return text;
}

std::string explain(const std::vector<SpecialisationReport>& reports) {
  if (reports.empty()) return "not compiled yet: the function has not been called\n";
  std::string out = fmt::format("{} specialisation{}\n", reports.size(), reports.size() == 1 ? "" : "s");
  for (const SpecialisationReport& r : reports) {
    out += fmt::format("for {}\n  compiled in {:.2f} ms: {}\n", r.arguments, r.compile_ms, r.reason);
    if (r.times.trace_ms > 0)
      out += fmt::format(
          "    trace {:.2f} ms, passes {:.2f} ms, print {:.2f} ms, compiler {:.2f} ms, load {:.2f} ms\n",
          r.times.trace_ms, r.times.passes_ms, r.times.print_ms, r.times.compiler_ms, r.times.load_ms);
    if (!r.dynamic.empty()) out += fmt::format("  dynamic dimensions: {}\n", r.dynamic);
    if (r.draws > 0)
      out += fmt::format("  random: {} tensor{} drawn at each call\n", r.draws, r.draws == 1 ? "" : "s");
    for (const std::string& b : r.breaks)
      out += fmt::format("  graph break: {}; the function is traced at every call\n", b);
    for (const std::string& p : r.in_place) out += fmt::format("  {}\n", p);
    if (!r.precision.empty()) out += fmt::format("  precision {}\n", r.precision);
    out += detail::kernels_text(r.kernels);
    if (r.replay_us > 0)
      out += fmt::format("  launched one by one {:.2f} us, as a graph {:.2f} us: {}\n", r.direct_us,
                         r.replay_us, r.replayed ? "replayed" : "not replayed");
    for (const std::string& n : r.not_fused) out += fmt::format("  not fused: {}\n", n);
    if (!r.recomputing.empty()) out += fmt::format("  {}\n", r.recomputing);
    if (!r.memory.empty()) out += fmt::format("  memory: {}\n", r.memory);
    if (r.arena_bytes > 0)
      out += fmt::format("  temporaries: {}B\n", perf::with_prefix(static_cast<double>(r.arena_bytes)));
    if (r.copied_bytes > 0)
      out += fmt::format("  copies beside the kernels: {}B\n", perf::with_prefix(r.copied_bytes));
    if (r.kernels.empty()) continue;
    out += fmt::format("  a call: floor {:.2f} us", r.floor_us);
    if (r.measured_us > 0) out += fmt::format(", measured {:.2f} us", r.measured_us);
    out += fmt::format(" (floors: {})\n", r.floor_source);
  }
  return out;
}

std::vector<std::string> dump_stages(const SpecialisationReport& report, const std::string& folder,
                                     const Location& where) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Unavailable(fmt::format("dump_stages: cannot make the folder {}: {}", folder, error.message()),
                      where);
  std::vector<std::string> paths;
  const auto write = [&](const std::string& stem, std::string_view ending, const std::string& text) {
    std::string path = fmt::format("{}/{}{}", folder, stem, ending);
    // Programs before and after a host read may have kernels of one name.
    for (int copy = 2; std::find(paths.begin(), paths.end(), path) != paths.end(); ++copy)
      path = fmt::format("{}/{}_{}{}", folder, stem, copy, ending);
    paths.push_back(path);
    if (Status written = write_safely(path, text, {.durable = false}); !written)
      throw Unavailable("dump_stages: " + written.error().message, where);
  };
  for (const Stage stage : {Stage::graph, Stage::fused})
    write(std::string(name(stage)), ".tw", stage_text(report, stage));
  for (const KernelReport& k : report.kernels) {
    write(k.name, ".tile", k.tile);
    if (k.target != tile::TargetKind::reference) write(k.name, tile::source_ending(k.target), k.source);
  }
  return paths;
}

}  // namespace tilewright
