// One graph, lowered and printed.
#include "ir/text.h"
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "replay/corpus.h"
#include "replay/recording_backend.h"

namespace tilewright::replay {

namespace {

// Buffers and steps by number: names are the kernels' own.
std::string plan_text(const tile::Plan& plan) {
  std::string text = fmt::format("arena {} bytes\n", plan.arena_bytes);
  static constexpr const char* kRoles[] = {"input", "output", "temporary"};
  for (const tile::PlanBuffer& b : plan.buffers)
    text += fmt::format("buffer {} {} {} x {} at {}\n", kRoles[static_cast<int>(b.role)], b.position,
                        name(b.dtype), b.elements, b.arena_offset);
  for (const tile::PlanStep& s : plan.steps) {
    if (s.kind == tile::PlanStep::Kind::launch) {
      text += fmt::format("launch {}:", s.kernel);
      for (const tile::ViewBinding& v : s.views) text += fmt::format(" {}+{}", v.buffer, v.offset);
      for (const std::int64_t scalar : s.scalars) text += fmt::format(" scalar {}", scalar);
      text += "\n";
    } else if (s.kind == tile::PlanStep::Kind::zero) {
      text += fmt::format("zero {}\n", s.buffer);
    } else {
      text += fmt::format("copy {} from {}\n", s.buffer, s.from);
    }
  }
  return text;
}

// Prints a plan's kernels as KernelStore does: the best legal candidate, equal kernels of one name once.
void print_kernels(const tile::Plan& plan, const RecordingBackend& backend) {
  std::multimap<std::string, std::size_t> by_name;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const tile::Kernel& kernel = plan.kernels[k];
    auto [known, end] = by_name.equal_range(kernel.name);
    while (known != end && !(plan.kernels[known->second] == kernel)) ++known;
    if (known != end) continue;
    by_name.insert({kernel.name, k});
    const std::vector<backends::Candidate> candidates = backend.candidates(kernel);
    const auto best = std::find_if(candidates.begin(), candidates.end(),
                                   [](const backends::Candidate& c) { return c.refusal.empty(); });
    if (best != candidates.end()) (void)backend.print(kernel, best->schedule);
  }
}

ProgramRecord record_graph(const std::string& name, const ir::Graph& graph, const Machine& machine,
                           const GraphEntryOptions& options) {
  ProgramRecord record{.name = name, .machine = machine.name, .graph = ir::print(graph)};
  tile::Target target = machine.target;
  target.tf32 = options.tf32;
  const passes::Compiled compiled = passes::run_pipeline(
      graph, target, {.recompute = options.recompute ? Recompute::always : Recompute::by_cost});
  record.plan = plan_text(compiled.plan);
  for (const std::string& why : compiled.taken_apart) record.plan += "taken apart: " + why + "\n";
  const Recording recording{machine, &record};
  print_kernels(compiled.plan, RecordingBackend(recording));
  return record;
}

}  // namespace

CorpusEntry graph_entry(std::string name, std::function<ir::Graph()> graph,
                        const GraphEntryOptions& options) {
  auto record = [name, graph = std::move(graph), options](const Machine& machine) {
    return std::vector{record_graph(name, graph(), machine, options)};
  };
  return {.name = std::move(name), .record = std::move(record), .in_short = options.in_short};
}

}  // namespace tilewright::replay
