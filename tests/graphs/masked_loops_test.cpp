// Groups padded to one number of rows: programs whose rows nothing uses do not multiply.
#include "ops/functions.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::test {
namespace {

using ir::Value;

constexpr Index kGroups = 3, kRows = 1200, kDepth = 40, kColumns = 24;
const std::vector<std::int64_t> kCounts = {1200, 0, 7};

ir::Graph padded_groups() {
  ir::Graph g("padded_groups");
  const Value x{&g, g.add_input("x", {DType::f32, {kGroups, kRows, kDepth}})},
      w{&g, g.add_input("w", {DType::f32, {kGroups, kDepth, kColumns}})},
      counts{&g, g.add_input("counts", {DType::i64, {kGroups, 1, 1}})};
  const Value used = ops::lt(ops::iota(g, {kGroups, kRows, kColumns}, 1),
                             ops::broadcast_to(counts, {kGroups, kRows, kColumns}));
  g.set_outputs({ops::where(used, ops::matmul(x, w), 0.0).id});
  return g;
}

class MaskedLoops : public testing::TestWithParam<const char*> {};

// What lies in padding, NaNs even, is not seen.
TEST_P(MaskedLoops, SkipRowsThatNothingUses) {
  GraphRunner runner(GetParam());
  const passes::Compiled compiled = passes::run_pipeline(padded_groups(), runner.device->target());
  ASSERT_EQ(compiled.kernels.size(), 1U);
  EXPECT_NE(compiled.kernels[0].note.find("that values decide"), std::string::npos)
      << compiled.kernels[0].note;
  std::vector<double> x(kGroups * kRows * kDepth, std::numeric_limits<double>::quiet_NaN()),
      w(kGroups * kDepth * kColumns);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (Index g = 0; g < kGroups; ++g)
    for (Index e = 0; e < kCounts[at(g)] * kDepth; ++e)
      x[at(g * kRows * kDepth + e)] = static_cast<double>(e % 13) - 6;
  for (std::size_t e = 0; e < w.size(); ++e) w[e] = static_cast<double>(e * 7 % 11) - 5;
  const std::vector<ir::HostTensor> in = {{{DType::f32, {kGroups, kRows, kDepth}}, x, {}},
                                          {{DType::f32, {kGroups, kDepth, kColumns}}, w, {}},
                                          {{DType::i64, {kGroups, 1, 1}}, {}, kCounts}};
  const std::vector<ir::HostTensor> out = runner.run(compiled, in);
  for (Index g = 0; g < kGroups; ++g)
    for (Index r = 0; r < kRows; ++r)
      for (Index c = 0; c < kColumns; ++c) {
        double want = 0;  // of small integers: exact
        for (Index k = 0; r < kCounts[at(g)] && k < kDepth; ++k)
          want += x[at((g * kRows + r) * kDepth + k)] * w[at((g * kDepth + k) * kColumns + c)];
        ASSERT_EQ(out[0].f[at((g * kRows + r) * kColumns + c)], want) << g << " " << r << " " << c;
      }
}

INSTANTIATE_TEST_SUITE_P(Devices, MaskedLoops, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
