// index_check_bench [--rounds N]: what the check of indices (ContextOptions::check) costs eager calls on the
// CPU: take and embedding of few and of many indices, checked by default and not at all, in turns; the least
// time of each. For whoever changes tensor/index_check.cpp; the figures are in
// docs/notes/2026-11-22-right-everywhere.md.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace tilewright {
namespace {

double microseconds(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / calls;
}

struct Setting {
  explicit Setting(std::optional<bool> check) : ctx({.cache_directory = "", .threads = 1, .check = check}) {}
  Context ctx;
  double least = 1e99;
};

void compare(Index rows, Index width, Index indices, int rounds) {
  Setting checked({}), not_checked(false);
  std::vector<std::function<void()>> calls;
  for (Setting* each : {&checked, &not_checked}) {
    const Tensor table = each->ctx.zeros({rows, width});
    std::vector<std::int64_t> at(static_cast<std::size_t>(indices));
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * 7919) % rows;
    const Tensor index = each->ctx.from(at, {indices});
    calls.emplace_back([table, index] { take(table, index, 0); });
  }
  const double once = std::max(microseconds(calls[0], 20), 0.1);
  const int batch = std::max(1, static_cast<int>(500 / once));
  for (int round = 0; round < rounds; ++round) {
    checked.least = std::min(checked.least, microseconds(calls[0], batch));
    not_checked.least = std::min(not_checked.least, microseconds(calls[1], batch));
  }
  fmt::print("{:>8} indices of rows of {:>4} f32: {:>9.3f} us checked, {:>9.3f} us not: {:+.1f} %\n", indices,
             width, checked.least, not_checked.least, 100 * (checked.least / not_checked.least - 1));
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const int rounds = argc > 2 && std::string(argv[1]) == "--rounds" ? std::atoi(argv[2]) : 400;
  for (tilewright::Index width : {1, 4, 100, 768})
    for (tilewright::Index indices : {1, 8, 64, 512, 513, 8192})
      tilewright::compare(4096, width, indices, rounds);
}
