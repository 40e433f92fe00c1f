#include "harness/report/summary.h"

#include <gtest/gtest.h>

#include "harness/report/charts.h"
#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Summary, IsOneLineAWorkloadAndOneColumnAContender) {
  const std::string text = render_summary(figures_of(synthetic::sample_run()));
  EXPECT_TRUE(
      contains(text, "| work | eager | compiled | tile | rate, eager | of the roofline | measured |\n"))
      << text;
  EXPECT_TRUE(contains(text, "| softmax 8192x1024 f32 | 3.000 ms | 1.000 ms | WRONG | 13.33 GB/s | 30 % |"))
      << text;
  EXPECT_TRUE(contains(text, "\nAMD EPYC (family 26 model 2); Linux 6.1 x86_64; built by gcc 12.2.0;"))
      << text;
}

TEST(Summary, SaysTheDevicesOwnTimesWhereTheyWereTakenAndWhoWasBest) {
  RunRecord run = synthetic::run_of({synthetic::timed(1000), synthetic::timed(500)});
  for (Row& row : run.rows) row.device = "cuda:0";
  run.rows[0].device_us = 950;
  run.rows[1].contender = "torch best";
  run.rows[1].chosen = "torch.compile";
  const std::string text = render_summary(figures_of(run));
  EXPECT_TRUE(contains(text, "| work | tile, call / device | torch best, call / device |")) << text;
  EXPECT_TRUE(contains(text, "| elu 4096 f32 | 1000 us / 950.0 us | 500.0 us / – (torch.compile) |")) << text;
}

TEST(Summary, WhatWasTakenInDifferentRunsStandsInDifferentLines) {
  RunRecord run = synthetic::run_of({synthetic::timed(1000), synthetic::timed(500)});
  run.rows[1].contender = "tuned";
  Figures figures = figures_of(run);
  figures.entries[1].date = "2026-11-22T10:00:00Z";
  figures.entries[1].commit = "bbbb";
  const std::string text = render_summary(figures);
  EXPECT_TRUE(contains(text, "| elu 4096 f32 | 1.000 ms |  | 40 GB/s | 90 % | 2026-11-21 |\n")) << text;
  EXPECT_TRUE(contains(text, "| elu 4096 f32 |  | 500.0 us |  |  | 2026-11-22 |\n")) << text;
  EXPECT_TRUE(contains(text, "commits 0123456789ab, bbbb.")) << text;
}

TEST(Figures, OfWhatIsStoredHaveTheirDateAndCommit) {
  RunRecord run = synthetic::run_of({synthetic::timed(1000)});
  run.rows[0].device_us = 950;
  run.rows[0].chosen = "torch.compile";
  const Figures read = figures_of(update_expectations(run, {"here", {}}, Regressions::refuse).merged);
  ASSERT_EQ(read.entries.size(), 1u);
  EXPECT_EQ(read.entries[0].row.key(), run.rows[0].key());
  EXPECT_EQ(read.entries[0].row.median_us, run.rows[0].median_us);
  EXPECT_EQ(read.entries[0].row.device_us, run.rows[0].device_us);
  EXPECT_EQ(read.entries[0].row.chosen, run.rows[0].chosen);
  EXPECT_EQ(read.entries[0].date, "2026-11-21T10:20:30Z");
  EXPECT_EQ(read.entries[0].commit, "0123456789ab");
  EXPECT_EQ(read.environment.cpu_model, run.environment.cpu_model);
}

TEST(Figures, SayOfWhichMachineAndDaysTheyAre) {
  Figures figures =
      figures_of(synthetic::run_of({synthetic::timed(1), synthetic::timed(2), synthetic::timed(3)}));
  figures.environment.gpu_name = "A GPU";
  EXPECT_EQ(measured_text(figures), "A GPU, 2026-11-21");
  figures.entries[0].date = "2026-11-22T10:00:00Z";
  EXPECT_EQ(measured_text(figures), "A GPU, 2026-11-21 and 2026-11-22");
  figures.entries[1].date = "2026-11-23T10:00:00Z";
  EXPECT_EQ(measured_text(figures), "A GPU, 2026-11-21 to 2026-11-23");
  figures.environment.gpu_name = "";
  EXPECT_EQ(measured_text(figures).find(figures.environment.cpu_model), 0u);
}

TEST(Figures, AreChosenInTheOrderOfPatternsAndContenders) {
  const Figures all = figures_of(synthetic::sample_run());
  std::vector<std::string> keys;
  for (const Row& row : run_of(selected(all, {"softmax*", "elu 4096 *"}, {"compiled", "eager"})).rows)
    keys.push_back(row.target + "/" + row.contender);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"softmax/compiled", "softmax/eager", "elu/compiled", "elu/eager"}));
  EXPECT_TRUE(selected(all, {"none"}, {}).entries.empty());
}

TEST(SharePicture, StandsAloneInLightAndDark) {
  const std::string svg = share_picture(synthetic::sample_run(), "shares <of> the roofline");
  for (const char* part :
       {"<svg ", "prefers-color-scheme: dark", "svg .dot.s1", "shares &lt;of&gt; the roofline",
        ">compiled</text>", ">softmax 8192x1024 f32</text>", "</svg>\n"})
    EXPECT_TRUE(contains(svg, part)) << part;
  EXPECT_EQ(share_picture({}, "nothing"), "");
}

}  // namespace
}  // namespace tilewright::lab
