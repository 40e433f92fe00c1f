// Costs add, scale, compare and print.
#include <tilewright/perf/cost.h>

#include <gtest/gtest.h>

namespace tilewright::perf {
namespace {

Cost sample_cost() {
  Cost cost;
  cost.matrix[DType::bf16] = 134e6;
  cost.vector[DType::f32] = 65536;
  cost.special_ops = 32768;
  cost.bytes_read = 1048576;
  cost.bytes_written = 524288;
  return cost;
}

TEST(Cost, AddsEveryPart) {
  Cost other;
  other.matrix[DType::bf16] = 1;
  other.vector[DType::f64] = 2;
  other.special_ops = 3;
  other.bytes_read = 4;
  other.bytes_written = 5;
  other.link_bytes = 6;
  const Cost sum = sample_cost() + other;
  EXPECT_EQ(sum.matrix[DType::bf16], 134e6 + 1);
  EXPECT_EQ(sum.vector[DType::f32], 65536);
  EXPECT_EQ(sum.vector[DType::f64], 2);
  EXPECT_EQ(sum.special_ops, 32771);
  EXPECT_EQ(sum.bytes(), 1048576 + 524288 + 9);
  EXPECT_EQ(sum.link_bytes, 6);
  EXPECT_EQ(other + other, other * 2);
  EXPECT_NE(sum, sample_cost());
}

TEST(Cost, FlopsCountBothUnitsAndNotTheSpecialOps) { EXPECT_EQ(sample_cost().flops(), 134e6 + 65536); }

TEST(Cost, IntensityOfNoTrafficIsZero) { EXPECT_EQ(Cost().intensity(), 0); }

TEST(Cost, PrintsWhatItHolds) {
  EXPECT_EQ(to_string(sample_cost()),
            "134 MFLOP bf16 dot + 65.5 kFLOP f32 + 32.8 k special, 1.05 MB read, 524 kB written");
  EXPECT_EQ(to_string(Cost()), "nothing");
  EXPECT_EQ(to_string(Cost{.bytes_read = 12}), "12 B read");
}

TEST(WithPrefix, KeepsThreeDigits) {
  EXPECT_EQ(with_prefix(1.97e14), "197 T");
  EXPECT_EQ(with_prefix(999.6), "1 k");
  EXPECT_EQ(with_prefix(0.0031), "3.1 m");
  EXPECT_EQ(with_prefix(0), "0 ");
  EXPECT_EQ(with_prefix(-2.5e6), "-2.5 M");
  EXPECT_EQ(with_prefix(1), "1 ");
}

}  // namespace
}  // namespace tilewright::perf
