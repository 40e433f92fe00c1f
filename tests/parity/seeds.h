// What the programs that try one seed after another share: which seeds, which of them are known to fail, how
// it ended.
#pragma once

#include "base/interrupt.h"
#include "support/draws.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace tilewright::test {

struct Seeds {
  std::uint64_t first = 1, count = 1000;
  std::string shard = "0/1";
  int jobs = 1;
  std::set<std::uint64_t> known;  // to fail; one that passes is named, so that the list can follow
};

inline void add_options(CLI::App& app, Seeds& seeds) {
  app.add_option("--seed", seeds.first);
  app.add_option("--count", seeds.count);
  app.add_option("--shard", seeds.shard, "i/n: every n-th seed, beginning with the i-th");
  app.add_option("--jobs", seeds.jobs, "processes that share the seeds")->check(CLI::PositiveNumber);
  app.add_option("--known", seeds.known, "seeds known to fail; one that passes is named")->delimiter(',');
}

// Calls `problem_with`, which says what is wrong with a seed or nothing, until ten seeds were wrong or
// Ctrl-C; `more` is added to the closing line, and long runs say each minute how far they are. The program's
// exit status.
inline int try_seeds(
    const Seeds& seeds, const std::function<std::string(std::uint64_t)>& problem_with,
    const std::function<std::string()>& more = [] { return std::string(); }) {
  constexpr std::uint64_t kMaxFailures = 10;
  constexpr double kTellEvery_s = 60;
  constexpr int kInterrupted = 130;  // as shells say it
  const std::uint64_t part = std::stoull(seeds.shard),
                      parts = std::stoull(seeds.shard.substr(seeds.shard.find('/') + 1));
  const std::uint64_t count = draws(seeds.count);
  std::uint64_t passed = 0, failed = 0, expected = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double told_s = 0;
  const InterruptGuard guard;
  std::uint64_t i = part;
  for (; i < count && failed < kMaxFailures && !InterruptGuard::interrupted(); i += parts) {
    const std::uint64_t seed = seeds.first + i;
    if (elapsed_s() > told_s + kTellEvery_s) {
      told_s = elapsed_s();
      fmt::print(stderr, "{} of {} seeds in {:.0f} s\n", i / parts, count / parts, told_s);
    }
    const std::string problem = problem_with(seed);
    const bool known = seeds.known.count(seed) != 0;
    if (problem.empty()) {
      ++passed;
      if (known) fmt::print("seed {} is listed as failing and passes: take it from the list\n", seed);
    } else if (known) {
      ++expected;
    } else {
      ++failed;
      fmt::print("seed {}: {}\n", seed, problem);
    }
  }
  fmt::print("{} passed, {} failed, {} known to fail, in {:.1f} s{}\n", passed, failed, expected, elapsed_s(),
             more());
  if (failed > 0) return 1;
  if (i >= count) return 0;
  // A shard goes on likewise: it begins `part` further.
  fmt::print("interrupted: --seed {} --count {} goes on\n", seeds.first + i - part, count - i + part);
  return kInterrupted;
}

}  // namespace tilewright::test
