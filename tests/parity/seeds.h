// What the programs that try one seed after another share: which seeds, which of them are known to fail, how
// it ended.
#pragma once

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
  std::set<std::uint64_t> known;  // to fail; one that passes is named, so that the list can follow
};

inline void add_options(CLI::App& app, Seeds& seeds) {
  app.add_option("--seed", seeds.first);
  app.add_option("--count", seeds.count);
  app.add_option("--shard", seeds.shard, "i/n: every n-th seed, beginning with the i-th");
  app.add_option("--known", seeds.known, "seeds known to fail; one that passes is named")->delimiter(',');
}

// Calls `problem_with`, which says what is wrong with a seed or nothing, until ten seeds were wrong; `more`
// is added to the closing line. The program's exit status.
inline int try_seeds(
    const Seeds& seeds, const std::function<std::string(std::uint64_t)>& problem_with,
    const std::function<std::string()>& more = [] { return std::string(); }) {
  constexpr std::uint64_t kMaxFailures = 10;
  const std::uint64_t part = std::stoull(seeds.shard),
                      parts = std::stoull(seeds.shard.substr(seeds.shard.find('/') + 1));
  std::uint64_t passed = 0, failed = 0, expected = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = part; i < seeds.count && failed < kMaxFailures; i += parts) {
    const std::uint64_t seed = seeds.first + i;
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
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{} passed, {} failed, {} known to fail, in {:.1f} s{}\n", passed, failed, expected, seconds,
             more());
  return failed == 0 ? 0 : 1;
}

}  // namespace tilewright::test
