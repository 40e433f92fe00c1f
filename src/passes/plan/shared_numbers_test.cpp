// Kernels that differ in numbers become one; what says where they read does not.
#include "passes/plan/shared_numbers.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilewright::passes {
namespace {

using tile::OpKind;

tile::Plan node_by_node(const std::string& text) {
  PipelineOptions each_by_itself;
  each_by_itself.fuse = false;
  return run_pipeline(ir::parse(text, ops::all_ops()).value(), tile::Target{}, each_by_itself).plan;
}

std::vector<std::string> texts_of(const tile::Plan& plan) {
  std::vector<std::string> texts;
  texts.reserve(plan.kernels.size());
  for (const tile::Kernel& kernel : plan.kernels) texts.push_back(tile::print(kernel));
  return texts;
}

// Three times a value is multiplied by a number of its own.
TEST(SharedNumbers, OfValuesAreArguments) {
  const tile::Plan plan = node_by_node(R"(graph @g(%a: f32[64]) -> f32[64] {
  %1 = constant {dtype=f32, shape=[64], value=3.5} : f32[64]
  %2 = mul %a, %1 : f32[64]
  %3 = constant {dtype=f32, shape=[64], value=4.5} : f32[64]
  %4 = mul %2, %3 : f32[64]
  %5 = constant {dtype=f32, shape=[64], value=5.5} : f32[64]
  %6 = mul %4, %5 : f32[64]
  return %6
}
)");
  ASSERT_EQ(plan.kernels.size(), 3U);
  EXPECT_EQ(plan.kernels[1], plan.kernels[0]);
  EXPECT_EQ(plan.kernels[2], plan.kernels[0]);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(plan.steps[i].scalars,
              std::vector<std::int64_t>{tile::scalar_bits(DType::f32, 3.5 + static_cast<double>(i))});
}

// Two values are padded by 3 and by 5: where they stand is said by numbers, too.
TEST(SharedNumbers, OfPlacesStay) {
  const tile::Plan plan = node_by_node(R"(graph @g(%a: f32[64]) -> (f32[72], f32[72]) {
  %1 = pad %a {high=[5], low=[3], value=0.0} : f32[72]
  %2 = neg %1 : f32[72]
  %3 = pad %a {high=[3], low=[5], value=0.0} : f32[72]
  %4 = neg %3 : f32[72]
  return %2, %4
}
)");
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_NE(texts_of(plan)[0], texts_of(plan)[1]);
  for (const tile::Kernel& kernel : plan.kernels) EXPECT_TRUE(kernel.scalars.empty()) << tile::print(kernel);
}

// One kernel alone keeps its numbers, from which backends make better code.
TEST(SharedNumbers, OfOneKernelStay) {
  const tile::Plan plan = node_by_node(R"(graph @g(%a: f32[64]) -> f32[64] {
  %1 = constant {dtype=f32, shape=[64], value=3.5} : f32[64]
  %2 = mul %a, %1 : f32[64]
  %3 = neg %2 : f32[64]
  return %3
}
)");
  for (const tile::Kernel& kernel : plan.kernels) EXPECT_TRUE(kernel.scalars.empty()) << tile::print(kernel);
  EXPECT_EQ(texts_of(plan).size(), 2U);
}

}  // namespace
}  // namespace tilewright::passes
