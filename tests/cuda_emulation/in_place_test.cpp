// Printed CUDA of programs that write over what they read: the same bits as of those that write elsewhere.
// Blocks run one after another here, so what is shown is the order within them: loads ahead of stores, no
// copies ahead of what is overwritten.
#include "support/donated_graph.h"
#include "support/draws.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::test {
namespace {

bool same(const ir::HostTensor& a, const ir::HostTensor& b) {
  const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.i == b.i && std::equal(a.f.begin(), a.f.end(), b.f.begin(), b.f.end(), equal);
}

TEST(EmulatedInPlace, DonatedGraphsHaveTheSameValues) {
  for (const char* device : {"emulated:sm_80", "emulated:sm_90a"}) {
    GraphRunner runner(device);
    const std::uint64_t graphs = draws(40);
    int found = 0;
    for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", device, seed));
      const ir::Graph graph = with_fitting_outputs(random_graph({.seed = seed,
                                                                 .ops = 8,
                                                                 .max_elements = seed % 3 == 0 ? 4000 : 300,
                                                                 .matmuls = seed % 4 == 0,
                                                                 .placed = seed % 2 == 0}));
      const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
      const passes::Compiled apart =
          passes::run_pipeline(graph, runner.device->target(), {.deterministic = true});
      const passes::Compiled given = donating(apart);
      if (donations(given) == 0) continue;
      found += donations(given);
      const auto expected = runner.run(apart, inputs), got = runner.run(given, inputs);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same(got[i], expected[i])) << "output " << i;
    }
    EXPECT_GT(found, static_cast<int>(graphs) / 2);
  }
}

}  // namespace
}  // namespace tilewright::test
