// One plan for several sizes, and another size's numbers read off its own kernels.
#include "passes/plan/generalise.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::passes {
namespace {

tile::Target for_any_size() {
  tile::Target target;
  target.any_size = target.ends_anywhere = true;
  return target;
}

tile::Plan lowered(const std::string& text) {
  return run_pipeline(ir::parse(text, ops::all_ops()).value(), for_any_size(), {}).plan;
}

// Rows and columns that are added to each other.
tile::Plan outer_sum(Index rows, Index columns, double scale = 3) {
  return lowered(fmt::format(R"(graph @g(%a: f32[{0},1], %b: f32[1,{1}]) -> f32[{0},{1}] {{
  %2 = reshape %a {{shape=[{0}]}} : f32[{0}]
  %3 = reshape %2 {{shape=[{0},1]}} : f32[{0},1]
  %4 = expand %3 {{shape=[{0},{1}]}} : f32[{0},{1}]
  %5 = expand %b {{shape=[{0},{1}]}} : f32[{0},{1}]
  %6 = add %4, %5 : f32[{0},{1}]
  %7 = constant {{dtype=f32, shape=[{0},{1}], value={2:.1f}}} : f32[{0},{1}]
  %8 = mul %6, %7 : f32[{0},{1}]
  return %8
}}
)",
                             rows, columns, scale));
}

TEST(Generalise, AThirdSizeIsTheSameKernelsWithItsOwnNumbers) {
  const auto general = generalise(outer_sum(40, 200), outer_sum(41, 210, 0.3));
  ASSERT_TRUE(general.ok()) << general.error().message;
  const tile::Plan third = outer_sum(77, 203, 0.7);
  const auto fit = fitted(*general, third);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_EQ(fit->kernels, general->kernels);
  EXPECT_EQ(fit->buffers, third.buffers);
  ASSERT_EQ(fit->steps.size(), third.steps.size());
  // What a launch of it does is what the kernel of this size alone would.
  const tile::PlanStep &own = third.steps.at(0), &shared = fit->steps.at(0);
  EXPECT_EQ(tile::grid_extents(fit->kernels.at(0), shared.scalars),
            tile::grid_extents(third.kernels.at(0), own.scalars));
  const std::int64_t scale = tile::scalar_bits(DType::f32, 0.7);
  for (const std::int64_t number : {std::int64_t{77}, std::int64_t{203}, scale})
    EXPECT_NE(std::find(shared.scalars.begin(), shared.scalars.end(), number), shared.scalars.end())
        << number;
}

TEST(Generalise, ASizeOfItsOwnIsNotFitted) {
  const auto general = generalise(outer_sum(40, 200), outer_sum(41, 200));
  ASSERT_TRUE(general.ok()) << general.error().message;
  EXPECT_TRUE(fitted(*general, outer_sum(43, 200)).ok());
  EXPECT_FALSE(fitted(*general, outer_sum(43, 201)).ok()) << "its columns are part of the kernel";
  EXPECT_FALSE(fitted(*general, outer_sum(43, 200, 0.5)).ok()) << "so is its number";
}

// One parameter stands for both: a size at which they differ has none.
TEST(Generalise, NumbersThatWereEqualByChanceStayEqual) {
  const auto general = generalise(outer_sum(40, 40), outer_sum(50, 50));
  ASSERT_TRUE(general.ok()) << general.error().message;
  EXPECT_TRUE(fitted(*general, outer_sum(45, 45)).ok());
  EXPECT_FALSE(fitted(*general, outer_sum(45, 46)).ok());
}

}  // namespace
}  // namespace tilewright::passes
