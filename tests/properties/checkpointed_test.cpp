// Random graphs with checkpoint's marks in them, wherever they fall, give what the float64 oracle says: what
// is launched again finds all that it reads.
#include "ops/checkpoint.h"
#include "passes/pipeline.h"
#include "properties/graph_property.h"
#include "support/draws.h"
#include "support/graph_check.h"

#include <tilewright/base/philox.h>

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

// The same graph, some of whose values are read through marks, and others by some of their readers.
ir::Graph marked(const ir::Graph& graph, std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto one_in = [&](std::uint32_t count) { return philox4x32(seed, drawn++)[0] % count == 0; };
  ir::Graph out("marked");
  struct Copy {
    ir::Value plain, behind;
  };
  std::vector<Copy> copies;
  for (const ir::Node& n : graph.nodes()) {
    ir::Value copy{&out, -1};
    if (n.op == &ir::input_op) {
      copy.id = out.add_input(n.name, n.type);
    } else {
      std::vector<ir::NodeId> operands;
      for (const ir::NodeId o : n.operands) {
        const Copy& of = copies[static_cast<std::size_t>(o)];
        operands.push_back(one_in(2) ? of.plain.id : of.behind.id);
      }
      copy.id = out.add(*n.op, operands, n.attrs, n.location);
    }
    copies.push_back({copy, copy});
    const bool goes_in = n.op == &ir::input_op;
    if (!one_in(2)) continue;
    const ops::Edge edge = goes_in || one_in(4) ? ops::Edge::in : ops::Edge::out;
    copies.back().behind = ops::checkpoint_edge(copy, edge, one_in(2) ? 0 : 1);
  }
  std::vector<ir::NodeId> outputs;
  for (const ir::NodeId o : graph.outputs()) outputs.push_back(copies[static_cast<std::size_t>(o)].plain.id);
  out.set_outputs(outputs);
  return out;
}

class CheckpointedGraphs : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CheckpointedGraphs, GiveWhatTheOracleSays) {
  GraphCheck cpu({.device = "cpu"});
  int repeated = 0;
  expect_holds({.seed = 2 + GetParam(),
                .cases = static_cast<int>(draws(240)),
                .options = graph_of_seed,
                .problem_with =
                    [&](const GraphCase& c) {
                      const ir::Graph graph = marked(c.graph, c.options.seed);
                      const passes::Compiled plan = passes::run_pipeline(graph, tile::Target());
                      repeated += plan.memory && plan.memory->repeated > 0 ? 1 : 0;
                      return cpu.problem_with(graph, c.options.seed);
                    },
                .command = "graph_fuzz, whose graph has no marks, --device cpu"});
  EXPECT_GT(repeated, 0) << "it is about these";
}

INSTANTIATE_TEST_SUITE_P(OnCpu, CheckpointedGraphs, testing::Values(0, 1));

}  // namespace
}  // namespace tilewright::test
