// What is predicted of kernels that keep a part of the cores at work.
#include "backends/cpu/candidates.h"

#include <tilewright/tile/builder.h>
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

// Eight programs read their rows once, or once more after a sum of them.
std::vector<backends::Candidate> candidates_of_rows(Index columns, int times) {
  tile::Builder k("rows");
  const tile::View x = k.view("x", DType::f32, {8, columns}), y = k.view("y", DType::f32, {8});
  const tile::Value row = k.program_id(0);
  tile::Value sum = k.literal(DType::f32, 0.0);
  for (int time = 0; time < times; ++time)
    sum = k.loop(Index{0}, columns, Index{4096}, {sum},
                 [&](tile::Value i, const std::vector<tile::Value>& carried) {
                   const tile::Value part = k.load(x, {row, i}, {.shape = {4096}});
                   return std::vector<tile::Value>{carried[0] + k.reduce(tile::Monoid::sum, part, 0)};
                 })[0];
  k.store(y, {row}, sum);
  const tile::Kernel kernel = k.finish({{{8, 1}}});
  const tile::Target target{.units = 2,
                            .memory_bytes_per_s = 40e9,
                            .cache_bytes_per_s = 80e9,
                            .cache_bytes = Index{256} << 20,
                            .unit_cache_bytes_per_s = 240e9,
                            .unit_cache_bytes = Index{4} << 20,
                            .flops_per_s = 1e15,
                            .launch_s = 0};
  return list_candidates(kernel, target);
}
double us_of_rows(Index columns, int times) {
  return candidates_of_rows(columns, times).front().predicted_us;
}

TEST(Candidates, FetchAheadWhatACoresOwnCachesDoNotHold) {
  for (const Index columns : {Index{1} << 15, Index{1} << 20, Index{1} << 23})
    for (const backends::Candidate& c : candidates_of_rows(columns, 1))
      EXPECT_EQ(std::get<tile::CpuLoops>(c.schedule.kind).fetch_ahead, columns > 1 << 15) << columns;
}

TEST(PredictedTime, FollowsTheCacheThatHoldsWhatIsRead) {
  const double small = us_of_rows(1 << 15, 1), middle = us_of_rows(1 << 20, 1),
               large = us_of_rows(1 << 23, 1);
  // The shared cache has a third of the rate of the cores' own; the small launch stays on one of two cores.
  EXPECT_NEAR(middle / small, 32 * 3 / 2.0, 0.1);
  EXPECT_NEAR(large / middle, 8 * 2, 0.1);  // of memory
}

TEST(PredictedTime, CountsWhatIsReadAgainWhereACoresCacheHasLostIt) {
  EXPECT_NEAR(us_of_rows(1 << 15, 2) / us_of_rows(1 << 15, 1), 1, 0.01);
  EXPECT_NEAR(us_of_rows(1 << 20, 2) / us_of_rows(1 << 20, 1), 2, 0.01);
}

}  // namespace
}  // namespace tilewright::cpu
