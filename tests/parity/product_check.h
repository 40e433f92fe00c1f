// What the programs that try products share: their options, the device that runs what is lowered for it or
// for a GPU, and the comparison with the oracle.
#pragma once

#include "parity/shards.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace tilewright::test {

struct ProductOptions {
  std::string device = "cpu", isa, architecture;
  bool print = false;
};

inline void add_options(CLI::App& app, ProductOptions& options) {
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  app.add_option("--lower-for", options.architecture, "sm_80, sm_90a: as for a GPU of this architecture");
  app.add_flag("--print", options.print);
}

// Lowers for the device, or for the GPU that is named, whichever runs the kernels.
struct ProductRunner {
  explicit ProductRunner(const ProductOptions& options) : runner(options.device, options.isa) {
    target = runner.device->target();
    if (options.architecture.empty()) return;
    auto gpu = runtime::Device::open("cuda", {.compile_only = options.architecture});
    if (!gpu) throw Error(gpu.error().message);
    target = (*gpu)->target();
  }
  // Runs what was lowered of `graph`; empty where that agrees with the oracle.
  std::string problem_with(const ir::Graph& graph, const passes::Compiled& compiled,
                           const std::vector<ir::HostTensor>& inputs, std::uint64_t seed) {
    return difference_from(oracle_of(graph, compiled), inputs, runner.run(compiled, inputs), {.seed = seed});
  }
  GraphRunner runner;
  tile::Target target;
};

// The program: what `problem_with` a runner and a seed finds, for each seed.
inline int try_products(CLI::App& app, int argc, char** argv, ProductOptions& options,
                        const std::function<std::string(ProductRunner&, std::uint64_t)>& problem_with) {
  Seeds seeds;
  add_options(app, options);
  add_options(app, seeds);
  CLI11_PARSE(app, argc, argv);
  if (const auto status = share_out(seeds)) return *status;
  try {
    ProductRunner runner(options);
    return try_seeds(seeds, [&](std::uint64_t seed) -> std::string {
      try {
        return problem_with(runner, seed);
      } catch (const std::exception& e) {
        return e.what();
      }
    });
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}

}  // namespace tilewright::test
