// Which loop is outside: what is the same for all rows of a narrow block is computed once.
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/tile/builder.h>

namespace tilewright::cpu {
namespace {

using namespace tile;

// y = x in the columns of `parts` intervals, as the parts of a concat are chosen, and 0 elsewhere.
Kernel chosen_columns(Index parts) {
  Builder k("chosen");
  const View x = k.view("x", DType::f32, {64, 192}), y = k.view("y", DType::f32, {64, 192});
  const Value at = k.literal_int(DType::i64, 0), first = k.program_id(0) * 64;
  const Value number = first + k.arange(64);
  Value result = k.literal(DType::f32, 0.0, {64, 64});
  for (Index part = 0; part < parts; ++part) {
    const Value inside = (number >= 20 + 60 * part) & (number < 50 + 60 * part);
    result = where(k.broadcast(k.expand(inside, 0), {64, 64}),
                   k.load(x, {at, first}, {.shape = {64, 64}}) * static_cast<double>(part + 1), result);
  }
  k.store(y, {at, first}, result);
  return k.finish({{{192, 64}}});
}

std::string chosen_text(const Kernel& kernel) {
  return print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
}

TEST(LoopShapeTest, MasksOfColumnsAreComputedOnceForAllRows) {
  const std::string text = chosen_text(chosen_columns(3));
  const std::size_t rows = text.find("for (i64 r");
  ASSERT_NE(rows, std::string::npos) << text;
  EXPECT_LT(text.rfind("lanes_before"), rows) << text;
  // One interval is a matter of two comparisons: vectors stay inside, as memory has them.
  const std::string cheap = chosen_text(chosen_columns(1));
  EXPECT_LT(cheap.find("for (i64 r"), cheap.find("for (i64 c")) << cheap;
}

using LoopShapeOnIsa = testing::OnIsa;

TEST_P(LoopShapeOnIsa, ChoicesAreTheInterpreters) {
  for (const Index parts : {1, 2, 3}) check(chosen_columns(parts));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, LoopShapeOnIsa, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
