#include "runtime/measured_target.h"

#include <tilewright/perf/roofline.h>

#include <gtest/gtest.h>

namespace tilewright::runtime {
namespace {

TEST(MeasuredTarget, TakesTheRatesOfACopyAndKeepsWhatIsNotMeasured) {
  const perf::Measurement measured[] = {
      {"memory.copy_bytes_per_s", 30e9, "probe"}, {"memory.read_bytes_per_s", 40e9, "probe"},
      {"memory_bytes_per_s", 40e9, "probe"},      {"level.L1.copy_bytes_per_s", 900e9, "probe"},
      {"level.L1.bytes", 32768, "probe"},         {"level.L3.copy_bytes_per_s", 150e9, "probe"},
      {"level.L3.bytes", 1 << 25, "probe"},       {"vector.f32", 200e9, "probe"}};
  tile::Target target;
  target.launch_s = 7e-6;
  target.row_bytes = 12345;
  const tile::Target with = with_ceilings(target, perf::from_measured("here", "here", measured));
  EXPECT_EQ(with.memory_bytes_per_s, 30e9);
  EXPECT_EQ(with.cache_bytes_per_s, 150e9);
  EXPECT_EQ(with.flops_per_s, 200e9);
  EXPECT_EQ(with.launch_s, 7e-6);
  EXPECT_EQ(with.row_bytes, 12345);
}

TEST(MeasuredTarget, RulesOfThumbGiveMatrixUnitsTheirRate) {
  tile::Target target;
  target.kind = tile::TargetKind::cuda;
  target.flops_per_s = 60e12;
  target.matrix_flops_per_s = 900e12;
  target.memory_bytes_per_s = 4e12;
  target.cache_bytes_per_s = 8e12;
  target.cache_bytes = 50 << 20;
  const perf::Hardware h = rules_of_thumb(target);
  perf::Cost work;
  work.matrix[DType::bf16] = 9e12;
  EXPECT_DOUBLE_EQ(perf::bounds(work, h).lower_s, 0.01);
  work.matrix[DType::f8e4m3] = 18e12;
  EXPECT_DOUBLE_EQ(perf::bounds(work, h).lower_s, 0.02);
  work.matrix[DType::f32] = 6e12;  // not by tensor cores, unless it may be tf32
  EXPECT_DOUBLE_EQ(perf::bounds(work, h).lower_s, 0.12);
  work.tf32 = 6e12;
  EXPECT_LT(perf::bounds(work, h).lower_s, 0.04);
  // A working set that fits lies in the cache between two calls.
  perf::Cost copy;
  copy.bytes_read = copy.bytes_written = 10e6;
  EXPECT_DOUBLE_EQ(perf::bounds(copy, perf::holding(h, copy.bytes())).lower_s, 20e6 / 8e12);
  copy.bytes_read = 1e9;
  EXPECT_DOUBLE_EQ(perf::bounds(copy, perf::holding(h, copy.bytes())).lower_s, 1.01e9 / 4e12);
}

}  // namespace
}  // namespace tilewright::runtime
