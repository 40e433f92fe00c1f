// Compiles, runs, and compares with the oracle, by random roundings first.
#include "support/graph_check.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "support/interval_reference.h"
#include "support/small_cuts.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tilewright::test {

namespace {

std::string text_difference(const passes::Compiled& compiled) {
  const auto graph = ir::parse(ir::print(compiled.graph), ops::all_ops());
  if (!graph) return "the graph's text does not parse: " + graph.error().message;
  if (!(*graph == compiled.graph)) return "the graph's text reads back as another graph";
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const std::string text = tile::print(kernel);
    const auto parsed = tile::parse(text);
    if (!parsed) return "a kernel's text does not parse: " + parsed.error().message + "\n" + text;
    if (!(*parsed == kernel)) return "a kernel's text reads back as another kernel\n" + text;
  }
  return "";
}

// Whether all are bit by bit what the first is.
std::string repeats(const std::vector<GraphRunner::Tensors>& runs) {
  const auto same = [](const ir::HostTensor& a, const ir::HostTensor& b) {
    return a.i == b.i && std::equal(a.f.begin(), a.f.end(), b.f.begin(), b.f.end(), [](double x, double y) {
             return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
           });
  };
  for (std::size_t run = 1; run < runs.size(); ++run)
    for (std::size_t out = 0; out < runs[0].size(); ++out)
      if (!same(runs[0][out], runs[run][out]))
        return fmt::format("output {} has other bits in run {}", out, run + 1);
  return "";
}

}  // namespace

RandomGraphOptions graph_of_seed(std::uint64_t seed, GraphFamily family) {
  // Every second is mixed, of all ops; the others have less to draw from.
  static constexpr GraphFamily kAny[] = {GraphFamily::mixed, GraphFamily::products, GraphFamily::mixed,
                                         GraphFamily::tiny,  GraphFamily::mixed,    GraphFamily::joined};
  if (family == GraphFamily::any) family = kAny[seed / 4 % std::size(kAny)];
  return {.seed = seed, .family = family, .matmuls = seed % 4 == 0};
}
RandomGraphOptions graph_of_seed(std::uint64_t seed) { return graph_of_seed(seed, GraphFamily::mixed); }

GraphCheck::GraphCheck(GraphCheckOptions options)
    : options_(std::move(options)), runner_(options_.device, options_.isa) {}

std::string GraphCheck::problem_with(const ir::Graph& graph, std::uint64_t seed) {
  const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
  try {
    const Recompute recompute = seed % 8 == 0 ? Recompute::always : Recompute::by_cost;
    const passes::Compiled compiled =
        passes::run_pipeline(graph, with_small_cuts(runner_.device->target(), seed),
                             {.fuse = options_.fuse,
                              .recompute = recompute,
                              .deterministic = options_.runs > 1,
                              .arena_bytes = seed % 8 >= 6 ? std::optional<Index>(0) : std::nullopt});
    if (!compiled.taken_apart.empty()) return "a group was taken apart: " + compiled.taken_apart.front();
    if (std::string text = text_difference(compiled); !text.empty()) return text;
    const std::vector<GraphRunner::Tensors> runs = runner_.run_each(
        compiled, std::vector<GraphRunner::Tensors>(static_cast<std::size_t>(options_.runs), inputs));
    if (std::string other = repeats(runs); !other.empty()) return other;
    const GraphRunner::Tensors& got = runs.front();
    // The graph as traced is an oracle whatever the types, as any narrow value of it may have been rounded or
    // not: it judges what the passes before fusion made of the graph. With narrow floats the graph that they
    // left, rounded where kernels store, is a closer one for the rest.
    if (std::string wrong = judged(graph, inputs, got, seed); !wrong.empty()) return wrong;
    const ir::Graph stored = oracle_of(graph, compiled);
    return stored == graph ? "" : judged(stored, inputs, got, seed);
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::string GraphCheck::judged(const ir::Graph& oracle, const GraphRunner::Tensors& inputs,
                               const GraphRunner::Tensors& got, std::uint64_t seed) {
  // What roundings at random miss, intervals do not, but they take more for right.
  std::string wrong = difference_from(oracle, inputs, got, {.seed = seed, .runs = 500});
  if (wrong.empty() || !difference(got, reference_intervals(oracle, inputs)).empty()) return wrong;
  ++decided_;
  return "";
}

}  // namespace tilewright::test
