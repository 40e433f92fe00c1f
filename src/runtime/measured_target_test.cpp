#include "runtime/measured_target.h"

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

}  // namespace
}  // namespace tilewright::runtime
