// Compiles by NVRTC every kernel that the lab pairs run on a GPU, at the lab's sizes, and those of random
// graphs: none fails, none spills, none is warned of.
//   cuda_compile --arch sm_90a [--graphs 500] [--family tiny] [--seed 1] [--no-pairs]
//   cuda_compile --arch sm_90a --pair softmax --set n=65536 --keep /tmp/kernels    their sources and cubins,
//   to be read
#include "cuda_compile/compiling_backend.h"
#include "ir/text.h"
#include "pairs/lab_device.h"
#include "pairs/pairs.h"
#include "parity/family.h"
#include "passes/pipeline.h"
#include "support/donated_graph.h"
#include "support/draws.h"
#include "support/graph_check.h"
#include "support/product_graphs.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>

namespace tilewright::test {

struct Options {
  std::string architecture = "sm_90a";
  std::uint64_t seed = 1, graphs = 500;
  GraphFamily family = GraphFamily::mixed;
  bool no_pairs = false;
  std::vector<std::string> pairs;  // these alone, and nothing else
  std::vector<std::string> settings;
  std::vector<std::uint64_t> products;  // seeds: these alone
  std::string keep;                     // folder for sources and binaries
};

// Runs every contender of every pair once, at the sizes of the suites, on a device that only compiles.
int compile_pairs(KernelCompiler& compiler, const Options& options) {
  use_for_contexts(compiler);
  lab::OpenDevice open =
      lab::open_lab_device({.device = "cuda", .cache_directory = "", .library_directory = TW_BACKEND_FOLDER});
  const std::vector<lab::Pair> pairs = lab::all_pairs();
  const std::vector<lab::Suite> suites = lab::all_suites();
  const std::vector<std::string> names =
      options.pairs.empty() ? std::vector<std::string>{"quick", "products"} : options.pairs;
  int failed = 0, ran = 0;
  for (const lab::Job& job :
       lab::select_jobs(pairs, suites, names, options.settings, lab::DeviceKind::cuda)) {
    const std::string what = job.pair->name + " " + job.knobs.to_string();
    auto instance = job.pair->make(job.knobs, open.device);
    if (!instance) {
      fmt::print("{}: {}\n", what, instance.error().message);
      ++failed;
      continue;
    }
    for (const lab::Contender& contender : instance->contenders) {
      if (!contender.unavailable.empty()) continue;
      ++ran;
      if (const Status done = contender.run(0); !done) {
        fmt::print("{}, {}: {}\n", what, contender.name, done.error().message);
        ++failed;
      }
    }
  }
  fmt::print("{} contenders of the lab's pairs, {} failed\n", ran, failed);
  return failed;
}

int compile_graphs(KernelCompiler& compiler, const Options& options) {
  int failed = 0;
  const std::uint64_t count = draws(options.graphs);
  for (std::uint64_t seed = options.seed; seed < options.seed + count; ++seed) {
    const ir::Graph graph = random_graph(graph_of_seed(seed, options.family));
    try {
      const Recompute recompute = seed % 8 == 0 ? Recompute::always : Recompute::by_cost;
      const passes::Compiled compiled =
          passes::run_pipeline(graph, compiler.printer().target(), {.recompute = recompute});
      for (const tile::Kernel& kernel : compiled.plan.kernels) (void)compiler.compile(kernel).value();
      if (seed % 4 != 0) continue;
      // Kernels that write over what they read, and blocks at starts that are data.
      const passes::Compiled given = donating(passes::run_pipeline(
          with_fitting_outputs(random_graph({.seed = seed, .placed = true})), compiler.printer().target()));
      for (const tile::Kernel& kernel : given.plan.kernels) (void)compiler.compile(kernel).value();
    } catch (const Error& e) {
      ++failed;
      fmt::print("seed {}: {}\n{}", seed, e.what(), ir::print(graph));
    }
  }
  fmt::print("{} random graphs, {} failed\n", count, failed);
  return failed;
}

// Matmuls: random ones, and large ones, of which `no_pairs` draws.
int compile_products(KernelCompiler& compiler, const Options& options) {
  const std::vector<std::uint64_t>& seeds = options.products;
  std::vector<ProductGraph> products;
  std::uint64_t number = 0;
  for (const ProductGraph& large : large_products())
    if (!options.no_pairs || is_drawn(number++)) products.push_back(large);
  for (std::uint64_t seed = 1; seed <= draws(60); ++seed) products.push_back(random_product(seed));
  if (!seeds.empty()) products.clear();
  for (std::uint64_t seed : seeds) products.push_back(random_product(seed));
  int failed = 0;
  for (const ProductGraph& product : products)
    for (const bool tf32 : {false, true}) {
      if (tf32 && product.dtype != DType::f32) continue;
      tile::Target target = compiler.printer().target();
      target.tf32 = tf32;
      try {
        const passes::Compiled compiled = passes::run_pipeline(graph_of(product), target);
        for (const tile::Kernel& kernel : compiled.plan.kernels) (void)compiler.compile(kernel).value();
      } catch (const Error& e) {
        ++failed;
        fmt::print("{}: {}\n", to_string(product), e.what());
      }
    }
  fmt::print("{} products, {} failed\n", products.size(), failed);
  return failed;
}

int run(const Options& options) {
  auto nvrtc = cuda::Nvrtc::open(cuda::nvrtc_search_from_environment());
  if (!nvrtc) {
    fmt::print("NVRTC is missing, so that no kernel was compiled; `scripts/setup.sh test` installs it.\n{}\n",
               nvrtc.error().message);
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  KernelCompiler compiler(options.architecture, options.keep);
  const bool all = options.pairs.empty() && options.products.empty();
  int failed = options.no_pairs || !options.products.empty() ? 0 : compile_pairs(compiler, options);
  if (options.pairs.empty()) failed += compile_products(compiler, options);
  if (all) failed += compile_graphs(compiler, options);
  for (const std::string& note : compiler.notes()) fmt::print("note: {}\n", note);
  for (const std::string& complaint : compiler.complaints()) fmt::print("{}\n", complaint);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{} kernels asked for, {} different ones compiled for {} by NVRTC {}, {} complaints, in {:.0f} s\n",
      compiler.asked(), compiler.compiled(), options.architecture, nvrtc->version(),
      compiler.complaints().size(), seconds);
  // A run that compiled nothing has proved nothing, and fails.
  return failed == 0 && compiler.complaints().empty() && compiler.compiled() > 0 ? 0 : 1;
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::Options options;
  CLI::App app("kernels of the lab and of random graphs, compiled by NVRTC");
  app.add_option("--arch", options.architecture, "sm_80, sm_90a, sm_100, sm_120");
  app.add_option("--seed", options.seed);
  app.add_option("--graphs", options.graphs, "how many random graphs");
  add_family(app, options.family);
  app.add_flag("--no-pairs", options.no_pairs);
  app.add_option("--pair", options.pairs, "compile the kernels of these pairs or suites alone");
  app.add_option("--set", options.settings, "a knob of a pair: key=value");
  app.add_option("--product", options.products, "compile these random products alone, by their seeds");
  app.add_option("--keep", options.keep,
                 "a folder that gets every kernel's source (.cu) and binary (.cubin)");
  CLI11_PARSE(app, argc, argv);
  return tilewright::test::run(options);
}
