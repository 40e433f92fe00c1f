// The text of any graph reads back as the graph.
#include "properties/graph_property.h"

#include "ir/text.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

// Tame or not, with all kinds of ops.
RandomGraphOptions of_any_kind(std::uint64_t seed) {
  return {.seed = seed, .ops = 14, .matmuls = true, .tame = seed % 2 == 0};
}

std::string text_problem(const GraphCase& c) {
  const auto parsed = ir::parse(ir::print(c.graph), ops::all_ops());
  if (!parsed) return parsed.error().message;
  return *parsed == c.graph ? "" : "it reads back as another graph:\n" + ir::print(*parsed);
}

TEST(GraphText, ReadsBackAsTheGraph) {
  expect_holds({.seed = 1, .cases = 5000, .options = of_any_kind, .problem_with = text_problem});
}

}  // namespace
}  // namespace tilewright::test
