#include "harness/report/compare.h"

#include <gtest/gtest.h>

#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

using synthetic::run_of;
using synthetic::timed;

std::string verdict_of(const Row& a, const Row& b) {
  return compare_runs(run_of({a}), run_of({b})).rows.at(0).verdict;
}

TEST(CompareRuns, OverlappingIntervalsAreTheSame) {
  EXPECT_EQ(verdict_of(timed(100), timed(102)), "SAME");  // [99, 102] and [101, 104]
  EXPECT_EQ(verdict_of(timed(100), timed(80)), "FASTER");
  EXPECT_EQ(verdict_of(timed(100), timed(120)), "SLOWER");
}

TEST(CompareRuns, TheRatioHasAnInterval) {
  const ComparedRow row = compare_runs(run_of({timed(100)}), run_of({timed(50)})).rows.at(0);
  EXPECT_DOUBLE_EQ(*row.ratio, 2);
  EXPECT_LT(row.ratio_ci95->low, 2);
  EXPECT_GT(row.ratio_ci95->high, 2);
}

TEST(CompareRuns, RowsOfOneRunOnlyAreNamed) {
  Row other = timed(10);
  other.shape = "8192";
  const auto comparison = compare_runs(run_of({timed(100)}), run_of({other}));
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[0].verdict, "ONLY A");
  EXPECT_EQ(comparison.rows[1].verdict, "ONLY B");
}

TEST(CompareRuns, WrongAndImpossibleRowsAreNoFigures) {
  Row impossible = timed(1);
  impossible.verdict = Verdict::impossible;
  EXPECT_EQ(verdict_of(timed(100), impossible), "INVALID (b IMPOSSIBLE)");
  Row wrong = timed(1);
  wrong.verified = false;
  wrong.verdict = Verdict::wrong;
  EXPECT_EQ(verdict_of(wrong, timed(1)), "INVALID (a WRONG)");
}

TEST(CompareRuns, DifferentConditionsAreListed) {
  RunRecord a = run_of({timed(100)}), b = a;
  b.environment.governor = "powersave";
  b.environment.git_commit = "fedcba987654";
  const auto comparison = compare_runs(a, b);
  EXPECT_EQ(comparison.differences,
            (std::vector<std::string>{"governor: none → powersave", "commit: 0123456789ab → fedcba987654"}));
  EXPECT_NE(render_comparison(comparison).find("differs: governor"), std::string::npos);
}

TEST(CompareRuns, ARunIsTheSameAsItself) {
  const RunRecord run = synthetic::sample_run();
  for (const ComparedRow& row : compare_runs(run, run).rows) {
    EXPECT_TRUE(row.verdict == "SAME" || row.verdict.starts_with("INVALID")) << row.key << " " << row.verdict;
  }
  EXPECT_TRUE(compare_runs(run, run).differences.empty());
}

}  // namespace
}  // namespace tilewright::lab
