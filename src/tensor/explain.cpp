// explain(): kernels with their floors, guards, recompiles, and why neighbours were not fused.
#include "tensor/explain.h"

#include "ir/op.h"
#include "ir/text.h"

#include <tilewright/perf/cost.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

std::string ops_text(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) {
  std::string text;
  for (ir::NodeId id : nodes) text += (text.empty() ? "" : " ") + std::string(graph.node(id).op->name);
  return text;
}

KernelReport kernel_report(const CompiledGraph& g, std::size_t i) {
  const tile::Target& target = g.compiled.target;
  const passes::Compiled::KernelInfo& info = g.compiled.kernels[i];
  const runtime::LoadedKernel& loaded = *g.executable->kernels()[i];
  KernelReport r;
  r.name = g.compiled.plan.kernels[i].name;
  r.ops = ops_text(g.compiled.graph, info.nodes);
  r.flops = info.cost.flops;
  r.bytes = info.cost.bytes;
  r.floor_us =
      1e6 * std::max(info.cost.bytes / target.memory_bytes_per_s, info.cost.flops / target.flops_per_s);
  r.predicted_us = loaded.predicted_us;
  r.build_ms = loaded.build_ms;
  r.origin = loaded.origin == runtime::LoadedKernel::Origin::disk ? "disk" : "compiled";
  r.schedule = to_string(loaded.source.schedule);
  r.source = loaded.source.text;
  r.tile = tile::print(g.compiled.plan.kernels[i]);
  return r;
}

std::vector<std::string> tuning_text(const runtime::KernelTuning& tuning) {
  if (tuning.stored) return {fmt::format("the stored winner, found in {:.1f} ms", tuning.ms)};
  std::vector<std::string> lines;
  for (const runtime::Trial& t : tuning.trials)
    lines.push_back(fmt::format(
        "{} predicted {:.2f} us, {}", to_string(t.schedule), t.predicted_us,
        t.failure.empty() ? fmt::format("measured {:.2f} us", t.measured_us) : "failed: " + t.failure));
  return lines;
}

}  // namespace

void describe(const CompiledGraph& g, SpecialisationReport& report) {
  for (std::size_t i = 0; i < g.compiled.kernels.size(); ++i) {
    report.kernels.push_back(kernel_report(g, i));
    if (i < g.tuning.size()) report.kernels.back().tuning = tuning_text(g.tuning[i]);
  }
  report.replayed = g.replay.replays();
  report.direct_us = g.replay.direct_us();
  report.replay_us = g.replay.replay_us();
  const ir::Graph& graph = g.compiled.graph;
  for (const passes::NotFused& n : g.compiled.fusion.not_fused)
    report.not_fused.push_back(fmt::format("{} %{} and {} %{}: {}", graph.node(n.producer).op->name,
                                           n.producer, graph.node(n.consumer).op->name, n.consumer,
                                           passes::explain(n.refusal)));
  report.fused = ir::print(graph);
  report.arena_bytes = g.compiled.plan.arena_bytes;
}

std::string explain_text(const std::vector<SpecialisationReport>& reports) {
  if (reports.empty()) return "not compiled yet: the function has not been called\n";
  std::string out = fmt::format("{} specialisation{}\n", reports.size(), reports.size() == 1 ? "" : "s");
  for (const SpecialisationReport& r : reports) {
    out += fmt::format("for {}\n  compiled in {:.2f} ms: {}\n", r.key, r.compile_ms, r.reason);
    for (const std::string& b : r.breaks)
      out += fmt::format("  graph break: {}; the function is traced at every call\n", b);
    for (const KernelReport& k : r.kernels) {
      out += fmt::format("  kernel {}: {}\n", k.name, k.ops);
      out += fmt::format("    {}B, {}FLOP, floor {:.2f} us; {} in {:.2f} ms\n", perf::with_prefix(k.bytes),
                         perf::with_prefix(k.flops), k.floor_us, k.origin, k.build_ms);
      if (!k.schedule.empty()) out += fmt::format("    schedule {}\n", k.schedule);
      for (const std::string& t : k.tuning) out += fmt::format("    tuned: {}\n", t);
    }
    if (r.replay_us > 0)
      out += fmt::format("  launched one by one {:.2f} us, as a graph {:.2f} us: {}\n", r.direct_us,
                         r.replay_us, r.replayed ? "replayed" : "not replayed");
    for (const std::string& n : r.not_fused) out += fmt::format("  not fused: {}\n", n);
    if (r.arena_bytes > 0)
      out += fmt::format("  temporaries: {}B\n", perf::with_prefix(static_cast<double>(r.arena_bytes)));
  }
  return out;
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
      for (ir::NodeId o : n.operands) operands.push_back(renamed[static_cast<std::size_t>(o)]);
      to = into.add(*n.op, operands, n.attrs, n.location);
    }
  }
  std::vector<ir::Value> out;
  for (ir::NodeId o : graph.outputs()) out.push_back({&into, renamed[static_cast<std::size_t>(o)]});
  return out;
}

}  // namespace tilewright::detail
