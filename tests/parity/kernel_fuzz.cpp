// Random tile kernels on a device against the reference interpreter. Prints the seed, the kernel and the
// printed source of each that differs.
//   kernel_fuzz --device cpu --count 1000 --seed 1 [--shard i/n] [--steps 10] [--all-schedules]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "parity/seeds.h"
#include "runtime/device.h"
#include "support/backend_parity.h"
#include "support/random_kernel.h"

namespace tilewright::test {

struct FuzzOptions {
  std::string device = "cpu", isa;
  int steps = 8;
  double scale = 1;
  bool all_schedules = false, print_source = false;
};

struct FuzzCount {
  Index refused = 0, compared = 0, undecided = 0;
  double worst = 0;
};

// What is wrong with the schedules of a seed, or nothing.
std::string check(backends::Backend& backend, std::uint64_t seed, const FuzzOptions& options,
                  FuzzCount& count) {
  const RandomKernel random = random_kernel(seed, {.steps = options.steps});
  std::vector<backends::Candidate> candidates = backend.candidates(random.kernel);
  if (!options.all_schedules && candidates.size() > 1) candidates.resize(1);
  const ParityOptions parity{.scalars = random.scalars,
                             .seed = seed,
                             .odd_share = seed % 3 == 0 ? 0.02 : 0,
                             .model = {.scale = options.scale, .flush_subnormals = true},
                             .undecided_limit = 1};
  std::string problems;
  for (const backends::Candidate& candidate : candidates) {
    std::string source;
    if (!candidate.refusal.empty()) {
      ++count.refused;
      continue;
    }
    const ParityReport report =
        check_parity(random.kernel, parity, on_backend(backend, candidate.schedule, source));
    count.compared += report.compared;
    count.undecided += report.undecided;
    count.worst = std::max(count.worst, report.worst);
    if (!report.ok())
      problems += fmt::format("[{}] {}\n{}", to_string(candidate.schedule), report.message,
                              options.print_source ? source : "");
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
  app.add_flag("--print", options.print_source, "print the source of what differs");
  CLI11_PARSE(app, argc, argv);
  auto device = tilewright::runtime::Device::open(options.device, {.isa = options.isa});
  if (!device) {
    fmt::print("{}\n", device.error().message);
    return 1;
  }
  tilewright::test::FuzzCount count;
  return try_seeds(
      seeds,
      [&](std::uint64_t seed) { return tilewright::test::check((*device)->backend(), seed, options, count); },
      [&] {
        return fmt::format(
            "; {} schedules refused, {} elements compared, {} undecided, worst {:.2f} of the bound",
            count.refused, count.compared, count.undecided, count.worst);
      });
}
