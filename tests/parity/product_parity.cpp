// Matmuls of sizes that break tilings, alone and with what fuses into them, against the float64 oracle.
//   product_parity --device cuda:0 --count 500 --seed 1 [--lower-for sm_90a] [--shard i/n | --jobs n]
// --lower-for gives the kernels that a GPU would run to the device, whichever it is.
#include "ir/text.h"
#include "parity/shards.h"
#include "support/product_graphs.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace tilewright::test {

struct ProductOptions {
  std::string device = "cpu", isa, architecture;
  bool print = false;
};

// Empty when the device agrees.
std::string check(GraphRunner& runner, const tile::Target& target, std::uint64_t seed,
                  const ProductOptions& options) {
  const ProductGraph product = random_product(seed);
  const ir::Graph graph = graph_of(product);
  if (options.print) fmt::print("{}: {}\n{}", seed, to_string(product), ir::print(graph));
  const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
  try {
    passes::Compiled compiled = passes::run_pipeline(graph, target, {.variants = true});
    // Every other seed: with other tiles, as a tuner may choose them.
    for (std::size_t i = 0; i < compiled.variants.size() && seed % 2 == 0; ++i)
      if (const std::vector<tile::Kernel>& of = compiled.variants[i]; !of.empty())
        compiled.plan.kernels[i] = of[seed / 2 % of.size()];
    const ir::Graph oracle = with_stored_roundings(compiled);
    const std::vector<ir::HostTensor> got = runner.run(compiled, inputs);
    std::string wrong;
    for (const int runs : {5, 50}) {
      wrong = difference(got, reference_with_spread(oracle, inputs, {.seed = seed, .runs = runs}));
      if (wrong.empty()) return "";
    }
    return fmt::format("{}: {}", to_string(product), wrong);
  } catch (const std::exception& e) {
    return fmt::format("{}: {}", to_string(product), e.what());
  }
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::ProductOptions options;
  tilewright::test::Seeds seeds;
  CLI::App app("matmuls against the float64 oracle");
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  app.add_option("--lower-for", options.architecture, "sm_80, sm_90a: as for a GPU of this architecture");
  add_options(app, seeds);
  app.add_flag("--print", options.print);
  CLI11_PARSE(app, argc, argv);
  if (const auto status = share_out(seeds)) return *status;
  tilewright::test::GraphRunner runner(options.device, options.isa);
  tilewright::tile::Target target = runner.device->target();
  if (!options.architecture.empty()) {
    auto gpu = tilewright::runtime::Device::open("cuda", {.compile_only = options.architecture});
    if (!gpu) {
      fmt::print(stderr, "{}\n", gpu.error().message);
      return 1;
    }
    target = (*gpu)->target();
  }
  return tilewright::test::try_seeds(
      seeds, [&](std::uint64_t seed) { return check(runner, target, seed, options); });
}
