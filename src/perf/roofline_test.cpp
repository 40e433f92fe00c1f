// Bounds: which unit's time counts, what limits, and what is refused.
#include <tilewright/perf/roofline.h>

#include <tilewright/base/error.h>

#include <gtest/gtest.h>

namespace tilewright::perf {
namespace {

// Round figures: matrix 1000, vector 100, special 10, memory 1, link 0.1 in units of 1e9 a second.
Hardware toy() {
  Hardware h;
  h.name = "toy";
  h.memory_bytes_per_s = {1e9, ""};
  h.matrix = {{DType::bf16, {1e12, ""}}};
  h.vector = {{DType::f32, {1e11, ""}}};
  h.special_ops_per_s = Figure{1e10, ""};
  h.link_bytes_per_s = Figure{1e8, ""};
  return h;
}

Cost full() {
  Cost c;
  c.matrix[DType::bf16] = 1e12;  // 1 s
  c.vector[DType::f32] = 2e11;   // 2 s
  c.special_ops = 3e10;          // 3 s
  c.bytes_read = 3e9;
  c.bytes_written = 1e9;  // 4 s
  return c;
}

TEST(Bounds, LowerIsTheLargestAndUpperTheSum) {
  const Bounds b = bounds(full(), toy());
  EXPECT_DOUBLE_EQ(b.t_matrix_s, 1);
  EXPECT_DOUBLE_EQ(b.t_vector_s, 2);
  EXPECT_DOUBLE_EQ(b.t_math_s, 2);
  EXPECT_DOUBLE_EQ(b.t_special_s, 3);
  EXPECT_DOUBLE_EQ(b.t_comms_s, 4);
  EXPECT_DOUBLE_EQ(b.lower_s, 4);
  EXPECT_DOUBLE_EQ(b.upper_s, 10);
  EXPECT_EQ(b.limit, Limit::memory);
}

TEST(Bounds, ProductsAsTf32TakeHalfTheRateOfBf16) {
  Cost c;
  c.matrix[DType::f32] = c.tf32 = 5e11;
  EXPECT_DOUBLE_EQ(bounds(c, toy()).t_matrix_s, 1);
  EXPECT_DOUBLE_EQ(c.flops(), 5e11);
  c.matrix[DType::f32] *= 2;  // the other half is exact, of six products of bf16 parts
  EXPECT_DOUBLE_EQ(bounds(c, toy()).t_matrix_s, 1 + 3);
}

TEST(Bounds, UnitsThatAreTheSamePortsAddUp) {
  Hardware cpu = toy();
  cpu.matrix_beside_vector = false;
  EXPECT_DOUBLE_EQ(bounds(full(), cpu).t_math_s, 3);
  EXPECT_DOUBLE_EQ(bounds(full(), cpu).upper_s, 10);
}

TEST(Bounds, TheLongestPartIsTheLimit) {
  Cost c = full();
  c.link_bytes = 1e9;  // 10 s
  EXPECT_EQ(bounds(c, toy()).limit, Limit::link);
  EXPECT_DOUBLE_EQ(bounds(c, toy()).t_comms_s, 10);
  c.special_ops = 2e11;
  EXPECT_EQ(bounds(c, toy()).limit, Limit::special);
  c.vector[DType::f32] = 3e12;
  EXPECT_EQ(bounds(c, toy()).limit, Limit::compute);
  EXPECT_EQ(bounds(Cost(), toy()).limit, Limit::nothing);
}

TEST(Bounds, RidgeIsTheIntensityWhereMathMeetsMemory) {
  Cost c;
  c.matrix[DType::bf16] = 5;
  c.bytes_read = 1;
  EXPECT_DOUBLE_EQ(bounds(c, toy()).ridge, 1000);
  EXPECT_DOUBLE_EQ(bounds(c, toy()).intensity, 5);
  c.link_bytes = 2;
  EXPECT_DOUBLE_EQ(bounds(c, toy()).ridge, 10000);
  EXPECT_DOUBLE_EQ(bounds(c, toy()).intensity, 2.5);
}

TEST(Bounds, SpecialOpsWithoutTheirOwnUnitCostNothingExtra) {
  Hardware h = toy();
  h.special_ops_per_s.reset();
  EXPECT_EQ(bounds(full(), h).t_special_s, 0);
}

TEST(Bounds, AMissingLinkIsNamed) {
  Hardware h = toy();
  h.link_bytes_per_s.reset();
  EXPECT_NO_THROW(bounds(full(), h));
  EXPECT_THROW(bounds(Cost{.link_bytes = 1}, h), Error);
}

TEST(Bounds, ASubstitutedRateIsNoted) {
  Cost c;
  c.vector[DType::bf16] = 1e11;
  const Bounds b = bounds(c, toy());
  EXPECT_DOUBLE_EQ(b.t_vector_s, 1);
  ASSERT_EQ(b.notes.size(), 1u);
  EXPECT_EQ(b.notes[0], "toy has no vector rate for bf16: the vector rate of f32 is used");
}

}  // namespace
}  // namespace tilewright::perf
