// The parts of a first call's time.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(CompileTimes, AddUpToTheFirstCall) {
  Context ctx({.cache_directory = ""});
  const Tensor x = ctx.randn({100, 30});
  const auto elu = [](const Tensor& a) { return where(a > 0.F, a, exp(a) - 1.F); };
  const auto first = compile(elu);
  first(x);
  const SpecialisationReport report = first.report().front();
  const CompileTimes& t = report.times;
  EXPECT_NEAR(t.trace_ms + t.passes_ms + t.print_ms + t.compiler_ms + t.load_ms, report.compile_ms, 1e-9);
  for (const double part : {t.trace_ms, t.passes_ms, t.print_ms, t.compiler_ms, t.load_ms})
    EXPECT_GT(part, 0);
  EXPECT_NE(first.explain().find(" ms, compiler "), std::string::npos);

  // The Context has compiled this program: another function of it is traced, and no more.
  const auto second = compile(elu);
  second(x);
  const CompileTimes again = second.report().front().times;
  EXPECT_EQ(again.compiler_ms, 0);
  EXPECT_EQ(again.print_ms, 0);
  EXPECT_GT(again.trace_ms, 0);
}

TEST(CompileTimes, AreNotToldOfFunctionsWithGraphBreaks) {
  Context ctx({.cache_directory = ""});
  const auto reads = compile([](const Tensor& a) { return a * sum(a).item(); });
  reads(ctx.ones({4}));
  EXPECT_EQ(reads.report().front().times.trace_ms, 0);
  EXPECT_EQ(reads.explain().find(" ms, compiler "), std::string::npos);
}

}  // namespace
}  // namespace tilewright
