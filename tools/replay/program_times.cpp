// program_times: what the launches of a graph file are predicted to take on a machine that need not be there,
// beside their floors: equal kernels together, the longest first.
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "passes/plan/launch_together.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/cost.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

#include "replay/machine.h"
#include "replay/text_file.h"

namespace tilewright::replay {

struct Wanted {
  std::optional<double> arena_mb;
  std::size_t kernels = 40;
  bool sources = false, memory = false, graph = false, recompute = false;
  Precision precision = Precision::f32;
};

namespace {

struct Launches {
  std::string name, schedule;
  std::string source;                                     // tile IR and printed text
  int count = 0, bundles = 0;                             // of launches, and of those that run as one
  double predicted_us = 0, megabytes = 0, gigaflops = 0;  // of one
};

// Kernels that are equal but for their names are one.
std::vector<Launches> launches_of(const tile::Plan& plan, const Machine& machine, bool sources) {
  std::map<std::string, std::size_t> known;
  std::vector<Launches> out;
  for (const tile::PlanStep& step : plan.steps) {
    if (step.kind != tile::PlanStep::Kind::launch) continue;
    tile::Kernel kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
    const std::string name = kernel.name;
    kernel.name = "kernel";
    const auto [place, is_new] = known.insert({tile::print(kernel), out.size()});
    if (is_new) {
      const std::vector<std::int64_t> scalars(kernel.scalars.size(), 4096);
      const perf::Cost work = tile::cost(kernel, scalars);
      const std::vector<backends::Candidate> candidates = machine.candidates(kernel);
      const auto best = std::find_if(candidates.begin(), candidates.end(),
                                     [](const backends::Candidate& c) { return c.refusal.empty(); });
      out.push_back({.name = name,
                     .schedule = best == candidates.end() ? "none" : tile::to_string(best->schedule),
                     .source = !sources || best == candidates.end()
                                   ? ""
                                   : tile::print(kernel) + machine.print(kernel, best->schedule).value().text,
                     .predicted_us = machine.target.predicted_us(kernel, machine.target),
                     .megabytes = work.bytes() * 1e-6,
                     .gigaflops = work.flops() * 1e-9});
    }
    ++out[place->second].count;
    if (!step.beside_previous) ++out[place->second].bundles;
  }
  return out;
}

// The temporaries that are alive when most bytes are: those of one size that kernels of one name write
// together.
void print_memory(const tile::Plan& plan) {
  struct Life {
    int first = -1, last = -1;
    std::string writer;
  };
  std::vector<Life> lives(plan.buffers.size());
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const tile::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    const auto touch = [&](int buffer, const std::string& by) {
      Life& life = lives[static_cast<std::size_t>(buffer)];
      if (life.first < 0) life = {s, s, by};
      life.last = s;
    };
    for (const tile::ViewBinding& v : step.views)
      touch(v.buffer, plan.kernels[static_cast<std::size_t>(step.kernel)].name);
    for (const int b : {step.buffer, step.from})
      if (b >= 0) touch(b, step.from < 0 ? "zeros" : "copy");
  }
  const auto bytes_of = [&](std::size_t b) {
    return plan.buffers[b].elements * static_cast<Index>(size_bytes(plan.buffers[b].dtype));
  };
  const auto alive = [&](std::size_t b, int step) {
    return plan.buffers[b].role == tile::PlanBuffer::Role::temporary && lives[b].first >= 0 &&
           lives[b].first <= step && step <= lives[b].last;
  };
  Index most = 0;
  int peak = 0;
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    Index bytes = 0;
    for (std::size_t b = 0; b < lives.size(); ++b) bytes += alive(b, s) ? bytes_of(b) : 0;
    if (bytes > most) most = bytes, peak = s;
  }
  std::map<std::string, std::pair<int, Index>> together;
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (!alive(b, peak)) continue;
    const tile::PlanBuffer& buffer = plan.buffers[b];
    const std::string stem = lives[b].writer.substr(0, lives[b].writer.find_last_of('_'));
    auto& [count, bytes] = together[fmt::format("{}[{}] by {}", name(buffer.dtype), buffer.elements, stem)];
    ++count;
    bytes += bytes_of(b);
  }
  std::vector<std::pair<std::string, std::pair<int, Index>>> rows(together.begin(), together.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  const auto megabytes = [](Index bytes) { return static_cast<double>(bytes) * 1e-6; };
  fmt::print(
      "most alive: {:.1f} MB in {} temporaries at step {} of {}, arena {:.1f} MB\n", megabytes(most),
      std::count_if(lives.begin(), lives.end(),
                    [&](const Life& l) { return alive(static_cast<std::size_t>(&l - lives.data()), peak); }),
      peak, plan.steps.size(), megabytes(plan.arena_bytes));
  for (const auto& [what, sum] : rows)
    fmt::print("{:10.1f} MB  {:3} x {}\n", megabytes(sum.second), sum.first, what);
}

int run(const std::string& file, const std::string& target, const Wanted& wanted) {
  const Machine machine = make_machine(target);
  const auto graph = ir::parse(text_of(file), ops::all_ops());
  if (!graph) throw Error(file + ": " + graph.error().message);
  passes::Compiled compiled = passes::run_pipeline(
      *graph, machine.target,
      {.recompute = wanted.recompute ? Recompute::always : Recompute::by_cost,
       .precision = wanted.precision,
       .arena_bytes = wanted.arena_mb ? std::optional<Index>(static_cast<Index>(*wanted.arena_mb * 1e6))
                                      : std::nullopt});
  passes::launch_together(compiled, compiled.plan.arena_bytes / 256);
  std::vector<Launches> launches = launches_of(compiled.plan, machine, wanted.sources);
  const auto time = [](const Launches& l) { return l.count * l.predicted_us; };
  double total = 0;
  int all = 0, bundles = 0;
  for (const Launches& l : launches) total += time(l), all += l.count, bundles += l.bundles;
  std::stable_sort(launches.begin(), launches.end(),
                   [&](const Launches& a, const Launches& b) { return time(a) > time(b); });
  fmt::print("{} on {}: {:.1f} us predicted, {} kernels, {} launches in {}, arena {:.1f} MB\n", file, target,
             total, launches.size(), all, bundles, static_cast<double>(compiled.plan.arena_bytes) * 1e-6);
  if (compiled.memory) fmt::print("  {}\n", passes::to_string(*compiled.memory));
  if (!compiled.fusion.recomputing.empty()) fmt::print("  {}\n", compiled.fusion.recomputing);
  for (std::size_t i = 0; i < std::min(wanted.kernels, launches.size()); ++i) {
    const Launches& l = launches[i];
    fmt::print("{:10.1f} us = {:3} x {:9.2f}  {:9.2f} MB {:9.2f} GFLOP  {}  [{}]{}\n", time(l), l.count,
               l.predicted_us, l.megabytes, l.gigaflops, l.name, l.schedule,
               l.bundles < l.count ? fmt::format("  in {} launches", l.bundles) : "");
    if (wanted.sources) fmt::print("{}\n", l.source);
  }
  if (wanted.memory) print_memory(compiled.plan);
  if (wanted.graph) {
    fmt::print("{}", ir::print(compiled.graph));
    for (const passes::NotFused& n : compiled.fusion.not_fused)
      fmt::print("%{} and %{} are apart: {}\n", n.producer, n.consumer, passes::explain(n.refusal));
  }
  return 0;
}

}  // namespace

}  // namespace tilewright::replay

int main(int argc, char** argv) {
  std::string file, target = "sm_90a", precision = "f32";
  tilewright::replay::Wanted wanted;
  CLI::App app("Predicted times of a graph file's launches on a machine that need not be there.");
  app.add_option("graph", file, "a graph text file, as tw explain --dump writes")->required();
  app.add_option("--target", target, "cpu, sm_80 or sm_90a");
  app.add_option("--kernels", wanted.kernels, "how many are shown");
  app.add_flag("--sources", wanted.sources, "with their tile IR and printed text");
  app.add_flag("--memory", wanted.memory, "and the temporaries that are alive when most bytes are");
  app.add_flag("--recompute", wanted.recompute, "with large values computed again wherever they may be");
  app.add_option("--arena", wanted.arena_mb, "MB that temporaries may take: launches are repeated for that");
  app.add_flag("--graph", wanted.graph, "and the graph after the passes, with what was not fused and why");
  app.add_option("--precision", precision, "of products of f32: f32, tf32, bf16, f16, fp8 or fp8-block");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto known = tilewright::parse_precision(precision);
    if (!known) throw tilewright::Error("there is no precision '" + precision + "'");
    wanted.precision = *known;
    return tilewright::replay::run(file, target, wanted);
  } catch (const std::exception& error) {
    fmt::print(stderr, "program_times: {}\n", error.what());
    return 2;
  }
}
