// Sums of millions of equal terms in every layout, on a device. Prints what each is off by and whether a
// chain of `--chain` additions in f32, whose sums are added up in another one as long, explains it.
//   sum_parity --device cuda:0 --chain 128
#include "support/long_sums.h"
#include "support/readable_errors.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>

namespace tilewright::test {
namespace {

int judge_sums(const std::string& device, int chain) {
  Context ctx({.device = device, .cache_directory = ""});
  int worse = 0;
  const auto report = [&](const LongSum& sum) {
    const bool holds = sum.error <= sum.most;
    worse += holds ? 0 : 1;
    fmt::print("{} {:<40} off {:.2e} of {:.2e}\n", holds ? "ok  " : "MORE", sum.what, sum.error, sum.most);
    std::fflush(stdout);
  };
  long_sums(ctx, 2 * worst_of_chain(0.1F, chain), report);
  for (Index length : {kLength, Index{100}, Index{1003}})
    report({fmt::format("running sum of {}", length),
            worst_of_running(cumsum(ctx.full({length}, 0.1), 0).to_vector<float>()), kRunningError});
  fmt::print("{} of the sums are off by more than chains of {} explain\n", worse, chain);
  return worse == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tilewright::test

int main(int argc, char** argv) {
  CLI::App app("sums of millions of equal terms");
  std::string device = "cpu";
  int chain = 64;
  app.add_option("--device", device);
  app.add_option("--chain", chain, "additions in f32, one after another, that a sum may be made of")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return tilewright::test::with_readable_errors("sum_parity",
                                                [&] { return tilewright::test::judge_sums(device, chain); });
}
