// Random tile kernels on a device against the reference interpreter. Prints the seed, the kernel and the
// printed source of each that differs.
//   kernel_fuzz --device cpu --count 1000 --seed 1 [--shard i/n] [--steps 10] [--all-schedules]
//   kernel_fuzz --device emulated:sm_90a --drawn-schedules 20     of every kind of CUDA schedule
//   kernel_fuzz --device cuda:0 --family tiny --all-schedules --count 1000 --jobs 16     kernels of random
//   graphs
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "parity/family.h"
#include "parity/shards.h"
#include "passes/pipeline.h"
#include "support/backend_parity.h"
#include "support/graph_check.h"
#include "support/open_device.h"
#include "support/random_kernel.h"
#include "support/random_schedule.h"
#include "support/readable_errors.h"

namespace tilewright::test {

struct FuzzOptions {
  std::string device = "cpu", isa;
  int steps = 8, drawn_schedules = 0;
  double scale = 1;
  bool all_schedules = false, print_source = false;
  std::optional<GraphFamily> family = {};  // kernels of such graphs
};

struct FuzzCount {
  Index schedules = 0, refused = 0, compared = 0, undecided = 0;
  double worst = 0;
};

// The kernels that lowering makes of a graph. Integers may pick rows: most of them lie inside.
std::vector<RandomKernel> kernels_of_graph(const RandomGraphOptions& options, const tile::Target& target) {
  std::vector<RandomKernel> out;
  for (tile::Kernel& kernel : passes::run_pipeline(random_graph(options), target).plan.kernels)
    out.push_back({std::move(kernel), {}});
  return out;
}

// What is wrong with a kernel under its schedules, or nothing.
std::string check(backends::Backend& backend, const RandomKernel& random, std::uint64_t seed,
                  const FuzzOptions& options, FuzzCount& count) {
  std::vector<backends::Candidate> candidates = backend.candidates(random.kernel);
  if (!options.all_schedules && candidates.size() > 1) candidates.resize(1);
  for (int i = 0; i < options.drawn_schedules; ++i) {
    const tile::Schedule drawn = random_schedule(seed * static_cast<std::uint64_t>(options.drawn_schedules) +
                                                 static_cast<std::uint64_t>(i));
    const auto printed = backend.print(random.kernel, drawn);
    candidates.push_back({.schedule = drawn, .refusal = printed ? "" : printed.error().message});
  }
  ParityOptions parity{.scalars = random.scalars,
                       .seed = seed,
                       .odd_share = seed % 3 == 0 && !options.family ? 0.02 : 0,
                       .model = {.scale = options.scale, .flush_subnormals = true},
                       .undecided_limit = 1};
  for (std::size_t v = 0; v < random.kernel.views.size() && options.family; ++v)
    if (is_integer(random.kernel.views[v].dtype)) parity.ranges[static_cast<int>(v)] = {-1, 7};
  std::string problems;
  for (const backends::Candidate& candidate : candidates) {
    std::string source;
    if (!candidate.refusal.empty()) {
      ++count.refused;
      continue;
    }
    const ParityReport report =
        check_parity(random.kernel, parity, on_backend(backend, candidate.schedule, source));
    ++count.schedules;
    count.compared += report.compared;
    count.undecided += report.undecided;
    count.worst = std::max(count.worst, report.worst);
    if (!report.ok())
      problems += fmt::format("[{}] {}\n{}", to_string(candidate.schedule), report.message,
                              options.print_source ? source : "");
  }
  return problems;
}

// The same of all kernels of a seed.
std::string check(backends::Backend& backend, std::uint64_t seed, const FuzzOptions& options,
                  FuzzCount& count) {
  if (!options.family)
    return check(backend, random_kernel(seed, {.steps = options.steps}), seed, options, count);
  std::string problems;
  try {
    for (const RandomKernel& kernel :
         kernels_of_graph(graph_of_seed(seed, *options.family), backend.target()))
      problems += check(backend, kernel, seed, options, count);
  } catch (const Error& e) {
    problems += e.what();
  }
  return problems;
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::FuzzOptions options;
  tilewright::test::Seeds seeds;
  CLI::App app("random tile kernels against the reference interpreter");
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  add_options(app, seeds);
  app.add_option("--steps", options.steps, "random steps per kernel");
  app.add_option("--scale", options.scale, "times the error that each op may bring");
  app.add_flag("--all-schedules", options.all_schedules, "not only the backend's first choice");
  app.add_option("--drawn-schedules", options.drawn_schedules, "random CUDA schedules a kernel, besides");
  app.add_flag("--print", options.print_source, "print the source of what differs");
  add_family(app, options.family);
  CLI11_PARSE(app, argc, argv);
  if (const auto status = share_out(seeds)) return *status;
  return tilewright::test::with_readable_errors("kernel_fuzz", [&] {
    const auto device = tilewright::test::open_device(options.device, options.isa);
    tilewright::test::FuzzCount count;
    return try_seeds(
        seeds,
        [&](std::uint64_t seed) { return tilewright::test::check(device->backend(), seed, options, count); },
        [&] {
          return fmt::format(
              "; {} schedules, {} refused, {} elements compared, {} undecided, worst {:.2f} of the bound",
              count.schedules, count.refused, count.compared, count.undecided, count.worst);
        });
  });
}
