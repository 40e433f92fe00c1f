// Random graphs, compiled for the CPU, give what the float64 oracle says. In two halves, for machines of two
// cores: each is a test of its own in CMakeLists.txt.
#include "properties/graph_property.h"
#include "support/draws.h"
#include "support/graph_check.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

class CompiledGraphs : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CompiledGraphs, GiveWhatTheOracleSays) {
  GraphCheck cpu({.device = "cpu"});
  expect_holds({.seed = GetParam(),
                .cases = static_cast<int>(draws(900)),
                .options = graph_of_seed,
                .problem_with = [&](const GraphCase& c) { return cpu.problem_with(c.graph, c.options.seed); },
                .command = "graph_fuzz --device cpu"});
}

INSTANTIATE_TEST_SUITE_P(OnCpu, CompiledGraphs, testing::Values(0, 1));

}  // namespace
}  // namespace tilewright::test
