// Random graphs, compiled for a device, against the float64 oracle. Prints the seed and the graph of each
// that differs.
//   graph_fuzz --device cpu --count 5000 --seed 1 [--shard i/n] [--no-fuse]
#include "ir/text.h"
#include "ops/ops.h"
#include "parity/seeds.h"
#include "support/interval_reference.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace tilewright::test {

struct FuzzOptions {
  std::string device = "cpu", isa;
  int ops = 12;
  bool no_fuse = false, print = false;
};

bool has_narrow_floats(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& n) { return is_narrow_float(n.type.dtype); });
}

// What is printed reads back as it was, in both languages.
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

class Fuzz {
 public:
  explicit Fuzz(FuzzOptions options) : options_(std::move(options)), runner_(options_.device, options_.isa) {}
  // Empty when the device agrees.
  std::string check(std::uint64_t seed);
  // Of how many graphs so far that is known by intervals alone.
  int decided() const { return decided_; }

 private:
  FuzzOptions options_;
  GraphRunner runner_;
  int decided_ = 0;
};

std::string Fuzz::check(std::uint64_t seed) {
  const ir::Graph graph = random_graph({.seed = seed, .ops = options_.ops, .matmuls = seed % 4 == 0});
  if (options_.print) fmt::print("{}", ir::print(graph));
  const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
  try {
    const Recompute recompute = seed % 8 == 0 ? Recompute::always : Recompute::by_cost;
    const passes::Compiled compiled = passes::run_pipeline(
        graph, runner_.device->target(), {.fuse = !options_.no_fuse, .recompute = recompute});
    if (const std::string text = text_difference(compiled); !text.empty()) return text;
    // Without narrow floats nothing is rounded between kernels, and the graph as written is the oracle.
    const ir::Graph oracle = has_narrow_floats(graph) ? with_stored_roundings(compiled) : graph;
    const std::vector<ir::HostTensor> got = runner_.run(compiled, inputs);
    // Where a rounding decides (tanh that reaches 1, then truncated), few roundings at random may miss what
    // it does, and many may; intervals do not, but take more for right.
    std::string wrong;
    for (const int runs : {5, 50, 500}) {
      wrong = difference(got, reference_with_spread(oracle, inputs, {.seed = seed, .runs = runs}));
      if (wrong.empty()) return "";
    }
    if (difference(got, reference_intervals(oracle, inputs)).empty()) {
      ++decided_;
      return "";
    }
    return wrong + "\n" + ir::print(graph);
  } catch (const std::exception& e) {
    return fmt::format("{}\n{}", e.what(), ir::print(graph));
  }
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::FuzzOptions options;
  tilewright::test::Seeds seeds;
  CLI::App app("random graphs against the float64 oracle");
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  add_options(app, seeds);
  app.add_option("--ops", options.ops);
  app.add_flag("--no-fuse", options.no_fuse);
  app.add_flag("--print", options.print);
  CLI11_PARSE(app, argc, argv);
  tilewright::test::Fuzz fuzz(options);
  return try_seeds(
      seeds, [&](std::uint64_t seed) { return fuzz.check(seed); },
      [&] { return fuzz.decided() == 0 ? "" : fmt::format(", {} decided by a rounding", fuzz.decided()); });
}
