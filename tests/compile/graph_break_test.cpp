// Host reads inside compiled functions: the results stay right, explain() names the line and shows what ran
// on both sides of it, and under fullgraph or in a derivative they are errors.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

class GraphBreaks : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu", .cache_directory = test::kernel_folder()}};
};

// A function whose way depends on values.
Tensor up_or_down(const Tensor& x) {
  const Tensor y = exp(x) * 2.f;
  return max(y).item() > 3 ? y + 1.f : sin(y);
}

TEST_F(GraphBreaks, FollowTheValuesOfEachCall) {
  const auto f = compile(up_or_down);
  const Tensor low = ctx_.zeros({3}), high = ctx_.ones({3});
  for (int call = 0; call < 2; ++call) {
    EXPECT_NEAR(f(low).to_vector<float>()[0], std::sin(2.0), 1e-6);
    EXPECT_NEAR(f(high).to_vector<float>()[2], 2 * std::exp(1.0) + 1, 1e-5);
  }
  EXPECT_EQ(f.report().size(), 1u) << "one specialisation, traced at each call";
}

TEST_F(GraphBreaks, AreReportedWithTheirLineAndWhatRanAroundThem) {
  const auto f = compile(up_or_down);
  f(ctx_.zeros({3}));
  const SpecialisationReport report = f.report().at(0);
  ASSERT_EQ(report.breaks.size(), 1u);
  EXPECT_NE(report.breaks[0].find("item() of f32[] at graph_break_test.cpp:"), std::string::npos)
      << report.breaks[0];
  ASSERT_GE(report.kernels.size(), 2u) << "before the read and after it";
  EXPECT_NE(report.kernels.front().ops.find("exp"), std::string::npos);
  EXPECT_NE(report.kernels.back().ops.find("sin"), std::string::npos);
  double flops = 0, floor_us = 0;
  for (const KernelReport& k : report.kernels) flops += k.flops, floor_us += k.floor_us;
  EXPECT_GT(flops, 0);
  EXPECT_DOUBLE_EQ(report.floor_us, floor_us);
  const std::string text = f.explain();
  for (const char* part : {"graph break", "kernel ", "FLOP", "a call: floor"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  f(ctx_.ones({3}));
  EXPECT_EQ(f.report().at(0).kernels.back().ops.find("sin"), std::string::npos) << "the last call's";
}

TEST_F(GraphBreaks, AreFollowedByCompiledCode) {
  const auto f = compile([](const Tensor& x, const Tensor& w) {
    const Tensor y = exp(x), unused = cos(x);
    const float first = y.to_vector<float>()[0], again = y.to_vector<float>()[0];
    return std::pair{sin(y * w) + first, x + (again - first)};
  });
  const Tensor x = ctx_.zeros({3}), w = ctx_.full({3}, 2);
  const auto [y, same] = f(x, w);
  EXPECT_NEAR(y.to_vector<float>()[1], std::sin(2.0) + 1, 1e-6);
  const SpecialisationReport report = f.report().at(0);
  EXPECT_EQ(report.breaks.size(), 1u) << "what has been computed is not run again";
  const auto fused = [](const KernelReport& k) { return k.ops == "mul sin add"; };
  EXPECT_TRUE(std::any_of(report.kernels.begin(), report.kernels.end(), fused)) << f.explain();
  // Results are the caller's own: an argument that is returned is a copy.
  compile([](const Tensor& t) { return t + 1.f; }).into({same}, {w});
  EXPECT_EQ(x.to_vector<float>()[0], 0.f);
}

TEST_F(GraphBreaks, MayLieInFunctionsThatCallOthers) {
  const auto inner = compile([](const Tensor& x) { return x * 2.f; });
  const auto slope = value_and_grad([](const Tensor& x) { return sum(x * x); });
  Tensor kept;
  const auto f = compile([&](const Tensor& x) {
    const Tensor y = inner(x);
    const double level = sum(y).item();
    kept = y;
    return inner(y) + slope(y).second + level;
  });
  EXPECT_EQ(f(ctx_.ones({3})).to_vector<float>(), std::vector<float>(3, 4 + 4 + 6));
  EXPECT_EQ((kept + kept).to_vector<float>(), std::vector<float>(3, 4)) << "a tensor like any other";
  EXPECT_EQ(inner(kept).to_vector<float>(), std::vector<float>(3, 4));
}

TEST_F(GraphBreaks, LeaveNoStageOut) {
  const auto f = compile([](const Tensor& x) {
    const Tensor y = exp(x);
    return y.to_vector<float>()[0] > 0 ? exp(y) : y;
  });
  f(ctx_.zeros({3}));
  const std::string folder = (std::filesystem::temp_directory_path() / "tilewright_graph_breaks").string();
  std::filesystem::remove_all(folder);
  const std::vector<std::string> paths = dump_stages(f.report().at(0), folder);
  EXPECT_EQ(paths.size(), 2u + 2 * 2) << "graph and fused, and two kernels of one name";
  for (const std::string& path : paths) EXPECT_GT(std::filesystem::file_size(path), 0u) << path;
  EXPECT_TRUE(std::filesystem::exists(folder + "/exp_0.cpp")) << "the source, in the language of its target";
  std::filesystem::remove_all(folder);
}

TEST_F(GraphBreaks, AStageThatCannotBeWrittenIsAnErrorWithItsPathAndPlace) {
  const auto f = compile([](const Tensor& x) { return exp(x); });
  f(ctx_.zeros({3}));
  const SpecialisationReport report = f.report().at(0);
  test::expect_says([&] { dump_stages(report, "/dev/null/x"); },
                    {"dump_stages: cannot make the folder /dev/null/x: ", "graph_break_test.cpp:"});
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tilewright_no_stages";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "fused.tw");  // no file can have this name
  test::expect_says([&] { dump_stages(report, folder.string()); },
                    {"dump_stages: ", "fused.tw", "graph_break_test.cpp:"});
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "graph.tw"));
  std::filesystem::remove_all(folder);
}

TEST_F(GraphBreaks, AreErrorsUnderFullgraphAndInDerivatives) {
  const Tensor x = ctx_.zeros({3});
  test::expect_says([&] { compile(up_or_down, {.fullgraph = true})(x); },
                    {"item() of f32[]", "compiled with fullgraph", "graph_break_test.cpp:"});
  const auto slope = value_and_grad([](const Tensor& t) { return sum(up_or_down(t)); });
  test::expect_says([&] { slope(x); }, {"item() of f32[]", "differentiated", "graph_break_test.cpp:"});
}

}  // namespace
}  // namespace tilewright
