// simplify on random graphs: the same values, and a result that it leaves alone.
#include "support/random_graph.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/graph/simplify.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(SimplifyFuzz, KeepsTheValuesOfTameGraphs) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const ir::Graph g = random_graph({.seed = seed, .ops = 16, .matmuls = true});
    const auto inputs = random_inputs(g, seed);
    const ir::Graph simple = passes::simplify(g);
    const auto values = ops::evaluate(simple, inputs);
    const std::string text = difference(values, reference_with_spread(g, inputs, {.seed = seed}));
    ASSERT_EQ(text, "") << "seed " << seed << "\n" << ir::print(g) << ir::print(simple);
  }
}

// Overflow, NaN, division by zero: what is infinite or NaN stays so.
TEST(SimplifyFuzz, KeepsInfinitiesAndNans) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const ir::Graph g = random_graph({.seed = seed, .ops = 10, .tame = false});
    const auto inputs = random_inputs(g, seed);
    const auto values = ops::evaluate(passes::simplify(g), inputs);
    const std::string text = difference(values, reference_with_spread(g, inputs, {.seed = seed}), 64);
    ASSERT_EQ(text, "") << "seed " << seed << "\n" << ir::print(g) << ir::print(passes::simplify(g));
  }
}

TEST(SimplifyFuzz, LeavesASimplifiedGraphAlone) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const ir::Graph once = passes::simplify(random_graph({.seed = seed, .ops = 16, .tame = seed % 2 == 0}));
    const ir::Graph twice = passes::simplify(once);
    ASSERT_TRUE(once == twice) << "seed " << seed << "\n" << ir::print(once) << ir::print(twice);
  }
}

TEST(SimplifyFuzz, NeverGrowsAGraphMuch) {
  int before = 0;
  int after = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const ir::Graph g = random_graph({.seed = seed, .ops = 16});
    for (const bool live : g.live()) before += live ? 1 : 0;
    after += passes::simplify(g).size();
  }
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace tilewright::test
