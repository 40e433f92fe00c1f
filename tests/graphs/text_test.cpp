// Damaged text of random graphs is refused without a crash. (That text reads back: tests/properties.)
#include "support/random_graph.h"

#include "ir/text.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(GraphTextFuzz, DamagedTextIsRefusedOrReadsAsAGraph) {
  Random random(7);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::string text = ir::print(random_graph({.seed = seed, .ops = 6, .tame = false}));
    const auto size = static_cast<Index>(text.size());
    switch (random.below(4)) {
      case 0:
        text.resize(static_cast<std::size_t>(random.below(size)));
        break;
      case 1:
        text[static_cast<std::size_t>(random.below(size))] = static_cast<char>(random.below(256));
        break;
      case 2:
        text.erase(static_cast<std::size_t>(random.below(size)), 3);
        break;
      default:
        text.insert(static_cast<std::size_t>(random.below(size)), "9999999999");
        break;
    }
    const auto parsed = ir::parse(text, ops::all_ops());
    if (!parsed.ok()) {
      ++refused;
      EXPECT_TRUE(parsed.error().message.starts_with("graph text ")) << parsed.error().message;
    } else {
      EXPECT_TRUE(ir::parse(ir::print(*parsed), ops::all_ops()).ok());
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace tilewright::test
