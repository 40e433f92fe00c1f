// lowering_time: what lowering costs, pass by pass, of the corpus' graphs and of larger networks. Nothing is
// printed or run by a backend. docs/notes/2026-11-23-lowering-time.md has its tables.
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/program_families.h"
#include "support/training_step.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "replay/corpus.h"
#include "replay/text_file.h"

namespace tilewright::replay {

namespace {

struct Options {
  std::string filter;
  std::vector<std::string> files;  // of graphs
  std::vector<std::string> machines = machine_names();
  int runs = 3;
};

struct Program {
  std::string name;
  std::function<ir::Graph()> graph;
};

// Milliseconds of each part of the road, by the names of passes::PipelineOptions::passed.
struct Costs {
  std::map<std::string, double, std::less<>> parts;
  double all_ms() const {
    return std::accumulate(parts.begin(), parts.end(), 0.0,
                           [](double sum, const auto& part) { return sum + part.second; });
  }
  double of(const char* part) const {
    const auto found = parts.find(part);
    return found == parts.end() ? 0 : found->second;
  }
};

struct Counts {
  std::size_t nodes = 0, kernels = 0, different = 0, trials = 0, programs = 0;
  double predicted_us = 0;  // of all kernels, those that are equal among them
};

// CPU time of this thread: other work on the machine does not count.
double thread_ms() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::vector<Program> programs(const std::vector<std::string>& files) {
  std::vector<Program> out;
  out.reserve(files.size());
  for (const std::string& file : files)
    out.push_back({file, [&file] {
                     auto graph = ir::parse(text_of(file), ops::all_ops());
                     if (!graph) throw Error(file + ": " + graph.error().message);
                     return *std::move(graph);
                   }});
  if (!files.empty()) return out;
  for (const int layers : {2, 12})
    for (const DType compute : {DType::f32, DType::bf16})
      out.push_back({fmt::format("GPT-2 training step, {} layers, {}", layers, name(compute)),
                     [=] { return graph_of(test::TrainingStep{.layers = layers, .compute = compute}); }});
  for (const test::ProgramFamily& family : test::program_families())
    for (const int layers : {4, 16, 48})
      if (std::string_view(family.name) == "residual_layers")
        out.push_back({fmt::format("residual layers with gradient, {}", layers), [&family, layers] {
                         return test::program_of(family, test::Derivative::first, layers);
                       }});
  return out;
}

Costs lower_once(const ir::Graph& graph, const tile::Target& target, Counts& counts) {
  Costs costs;
  double last = thread_ms();
  passes::PipelineOptions options;
  options.passed = [&](std::string_view part) {
    const double before = std::exchange(last, thread_ms());
    costs.parts[std::string(part)] += last - before;
  };
  const passes::Compiled compiled = passes::run_pipeline(graph, target, options);
  std::set<std::string> names;
  for (const tile::Kernel& kernel : compiled.plan.kernels) names.insert(kernel.name);
  counts = {.nodes = static_cast<std::size_t>(graph.size()),
            .kernels = compiled.plan.kernels.size(),
            .different = names.size(),
            .trials = compiled.fusion.work.asked,
            .programs = compiled.fusion.work.programs,
            .predicted_us = compiled.fusion.seconds * 1e6};
  return costs;
}

int run(const Options& options) {
  fmt::print(
      "| program | target | nodes | kernels | different | prices asked | programs built | rewrite the graph "
      "| "
      "store | fuse (in pieces) | emit tiles, plan | lower, all | predicted, us "
      "|\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const std::string& machine_name : options.machines) {
    const Machine machine = make_machine(machine_name);
    for (const Program& program : programs(options.files)) {
      if (program.name.find(options.filter) == std::string::npos) continue;
      const ir::Graph graph = program.graph();
      Counts counts;
      Costs least = lower_once(graph, machine.target, counts);
      for (int i = 1; i < options.runs; ++i) {
        const Costs costs = lower_once(graph, machine.target, counts);
        if (costs.all_ms() < least.all_ms()) least = costs;
      }
      fmt::print(
          "| {} | {} | {} | {} | {} | {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |\n",
          program.name, machine.name, counts.nodes, counts.kernels, counts.different, counts.trials,
          counts.programs, least.of("rewrite"), least.of("store"), least.of("fuse"), least.of("plan"),
          least.all_ms(), counts.predicted_us);
    }
  }
  return 0;
}

}  // namespace

}  // namespace tilewright::replay

int main(int argc, char** argv) {
  tilewright::replay::Options options;
  CLI::App app(
      "Times the passes on networks, without any backend, in milliseconds of the thread's own time: of "
      "several "
      "runs of a program the one that was fastest as a whole.");
  app.add_option("--targets", options.machines, "cpu, sm_80, sm_90a; all by default")->delimiter(',');
  app.add_option("--filter", options.filter, "only programs with this in their name: 12 layers");
  app.add_option("--graphs", options.files, "Files of graphs, instead of these programs");
  app.add_option("--runs", options.runs, "of each program; 3 by default")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return tilewright::replay::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lowering_time: {}\n", error.what());
    return 2;
  }
}
