// Mistakes that are planted: the graph that is shown for one is the op that is wrong and nothing else.
#include "properties/graph_property.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "support/graph_check.h"
#include "support/mistaken_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::test {
namespace {

// A compiler that takes every `right` for `wrong`.
struct Mistake {
  const ir::Op& right;
  const ir::Op& wrong;

  std::string operator()(const GraphCase& c) const {
    const auto inputs = random_inputs(c.graph, c.options.seed);
    const ir::Graph other = mistaken(c.graph, [&](ir::NodeId id) {
      const ir::Op* op = c.graph.node(id).op;
      return op == &right ? &wrong : op;
    });
    const auto got = ops::evaluate(other, inputs);
    return difference(got, reference_with_spread(c.graph, inputs, {.seed = c.options.seed, .runs = 50}));
  }
};

Index nodes(const ir::Graph& graph) {
  const std::vector<bool> live = graph.live();
  return std::count(live.begin(), live.end(), true);
}

std::size_t computed(const ir::Graph& graph) {
  std::size_t count = 0;
  const std::vector<bool> live = graph.live();
  for (std::size_t id = 0; id < live.size(); ++id)
    count += live[id] && graph.nodes()[id].op->kind != ir::OpClass::input ? 1 : 0;
  return count;
}

bool has(const ir::Graph& graph, const ir::Op& op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const ir::Node& n) { return n.op == &op; });
}

// A mistaken op, and the nodes of the smallest graph that shows it: the op and its operands.
struct Planted {
  Mistake mistake;
  Index nodes;
};
const Planted kPlanted[] = {{{ops::kSin, ops::kCos}, 2},
                            {{ops::kErf, ops::kTanh}, 2},
                            {{ops::kMaximum, ops::kMinimum}, 3},
                            {{ops::kMax, ops::kMin}, 2}};

TEST(Shrinking, APropertyShowsTheOpThatIsWrongAlone) {
  for (const Planted& planted : kPlanted) {
    GraphCase shown;
    const rc::detail::TestResult result =
        check({.seed = 1, .cases = 1000, .options = graph_of_seed, .problem_with = [&](const GraphCase& c) {
                 std::string problem = planted.mistake(c);
                 if (!problem.empty()) shown = c;
                 return problem;
               }});
    ASSERT_TRUE(result.is<rc::detail::FailureResult>()) << planted.mistake.right.name;
    const std::string text = ir::print(shown.graph);
    EXPECT_TRUE(has(shown.graph, planted.mistake.right)) << text;
    EXPECT_EQ(nodes(shown.graph), planted.nodes) << text;
    EXPECT_NE(result.get<rc::detail::FailureResult>().description.find(text), std::string::npos) << text;
  }
}

// Shrinks a seed's graph, as graph_fuzz does.
TEST(Shrinking, ASeedsGraphIsMadeSmall) {
  for (const Planted& planted : kPlanted) {
    AskedOnce problem_with{planted.mistake};
    std::uint64_t seed = 1;
    while (seed < 1000 && problem_with(graph_case(graph_of_seed(seed))).empty()) ++seed;
    const GraphCase small = shrink(graph_case(graph_of_seed(seed)), problem_with);
    EXPECT_TRUE(has(small.graph, planted.mistake.right)) << ir::print(small.graph);
    EXPECT_EQ(nodes(small.graph), planted.nodes) << ir::print(small.graph);
    EXPECT_NE(problem_with(small), "");
  }
}

// Recorded answers make the same graph again, so that what is shrunk is what failed.
TEST(Shrinking, WhatWasAnsweredMakesTheSameGraph) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RandomGraphOptions options = graph_of_seed(seed);
    options.tame = seed % 3 != 0;
    const GraphCase drawn = graph_case(options);
    EXPECT_TRUE(drawn.graph == random_graph(options)) << seed;
    const GraphCase again = graph_case(options, drawn.numbers);
    EXPECT_TRUE(again.graph == drawn.graph) << seed;
    EXPECT_EQ(again.numbers, drawn.numbers) << seed;
  }
}

// Whatever the numbers: else shrinking would stop at a failure of the generator's own.
TEST(Shrinking, AnyNumbersMakeAGraph) {
  Random random(3);
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Numbers numbers;
    for (Index i = random.below(100); i > 0; --i) numbers.push_back(random.next() >> random.below(64));
    const GraphCase made = graph_case(graph_of_seed(seed), numbers);
    EXPECT_GE(made.graph.inputs().size(), 1u);
    EXPECT_TRUE(graph_case(made.options, made.numbers).graph == made.graph);
  }
}

TEST(Shrinking, SimplerNumbersAreSimplerAndEnd) {
  const Numbers numbers = {3, 0, std::uint64_t{1} << 52, 70, 1};
  SimplerNumbers all(numbers);
  int count = 0;
  while (const std::optional<Numbers> simpler = all.next()) {
    EXPECT_TRUE(is_simpler(*simpler, numbers));
    ++count;
  }
  // Every piece; nothing, half, one less of 3 and 1, which are countable, where they differ; two of the
  // large.
  EXPECT_EQ(count, 15 + 3 + 2 + 2 + 1);
}

TEST(Shrinking, CutsComputeLessAndReadBack) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const ir::Graph graph = random_graph(graph_of_seed(seed));
    for (const ir::Graph& part : cuts(graph)) {
      EXPECT_LT(computed(part) + part.outputs().size(), computed(graph) + graph.outputs().size())
          << ir::print(part);
      EXPECT_TRUE(ir::parse(ir::print(part), ops::all_ops()).ok()) << ir::print(part);
    }
  }
}

}  // namespace
}  // namespace tilewright::test
