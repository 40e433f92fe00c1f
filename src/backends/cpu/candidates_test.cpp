// What is predicted of kernels that keep a part of the cores at work.
#include "backends/cpu/candidates.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cpu {
namespace {

tile::Kernel exponentials(int programs) {
  const std::string n = std::to_string(programs);
  return tile::parse("kernel @k(%x: view<f32,[" + n + R"(,4096],strides=[4096,1],align=256>,
    %y: view<f32,[)" +
                     n + R"(,4096],strides=[4096,1],align=256>) grid()" + n + R"() {
  %pid = program_id 0 : i64
  %none = constant 0 : i64
  %row = load %x[%pid, %none] : tile<f32,[4096]>
  %e = exp %row : tile<f32,[4096]>
  store %y[%pid, %none], %e : tile<f32,[4096]>
}
)")
      .value();
}

double us(int programs, int cores, double flops_per_core_s = 1e9) {
  const tile::Target target{.units = cores,
                            .memory_bytes_per_s = cores * 20e9,
                            .cache_bytes_per_s = cores * 120e9,
                            .flops_per_s = cores * flops_per_core_s,
                            .launch_s = 0,
                            .alone_share = 0.5};
  return predicted_us(exponentials(programs), target);
}

TEST(PredictedTime, LeavesCoresIdleThatHaveNoProgram) {
  EXPECT_DOUBLE_EQ(us(1, 8), us(1, 1));
  EXPECT_DOUBLE_EQ(us(8, 8), us(1, 1));
  EXPECT_DOUBLE_EQ(us(8, 1), 8 * us(1, 1));
}

// A launch of less than kInlineUs stays on its caller (CpuProgram::launch).
TEST(PredictedTime, LeavesTheOtherCoresAsleepForLittleWork) {
  EXPECT_DOUBLE_EQ(us(8, 8, 1e11), us(8, 1, 1e11));
  EXPECT_LT(us(800, 8, 1e11), us(800, 1, 1e11) / 4);
}

}  // namespace
}  // namespace tilewright::cpu
