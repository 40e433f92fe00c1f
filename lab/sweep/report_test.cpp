// What the report says of figures that are known.
#include "sweep/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tilewright::sweep {
namespace {

TEST(SweepReport, ADistributionHasItsQuartilesAndShares) {
  const Distribution d = distribution({2, 0.5, 1, 0.9, 4});
  EXPECT_EQ(d.count, 5);
  EXPECT_DOUBLE_EQ(d.least, 0.5);
  EXPECT_DOUBLE_EQ(d.median, 1);
  EXPECT_DOUBLE_EQ(d.most, 4);
  EXPECT_DOUBLE_EQ(d.at_least_as_fast, 0.6);
  EXPECT_DOUBLE_EQ(d.nearly, 0.8);
  EXPECT_NEAR(d.geometric_mean, 1.29, 0.01);
  EXPECT_EQ(distribution({}).count, 0);
}

SweepRow row_of(const std::string& family, double ours, double peer) {
  SweepRow row{
      .family = family, .command = "tw bench sweep --family " + family, .ours_us = ours, .peer_us = peer};
  row.contenders.push_back({.contender = "compiled", .device = "cpu"});
  return row;
}

TEST(SweepReport, WrongResultsStandFirstAndTheWorstRatioHeadsItsList) {
  SweepRow wrong = row_of("norm", 1, 1);
  wrong.wrong = "y[3]: got 1, want 2";
  const std::string text = render({row_of("scan", 10, 20), row_of("loss", 10, 5), wrong}, 140);
  EXPECT_EQ(text.find("WRONG: norm"), 0u) << text;
  const std::string worst = text.substr(text.find("ratio to the best peer is least"));
  EXPECT_LT(worst.find("loss"), worst.find("scan")) << worst;
}

TEST(SweepReport, JsonHasARowForEachProgramAndTheSummary) {
  const auto json = nlohmann::json::parse(to_json({row_of("scan", 10, 20), row_of("loss", 10, 5)}, {}));
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["family"], "scan");
  EXPECT_EQ(json[0]["ratio"], 2);
  EXPECT_EQ(json[2]["summary"]["calls"]["count"], 2);
}

TEST(SweepReport, PredictionsAreJudgedWhereKernelsAreLong) {
  const auto predicted = [](double ours, double predicted, int kernels) {
    SweepRow row = row_of("scan", ours, 1);
    row.predicted_us = predicted, row.kernels = kernels;
    return row;
  };
  // 100 by 125 is near, 100 by 131 is not; ten kernels of 10 us, and one of 3, are short.
  const auto json = nlohmann::json::parse(to_json(
      {predicted(100, 125, 1), predicted(100, 131, 1), predicted(100, 100, 10), predicted(3, 9, 1)}, {}));
  EXPECT_EQ(json[4]["summary"]["predicted_within_30_percent"]["count"], 2);
  EXPECT_EQ(json[4]["summary"]["predicted_within_30_percent"]["share"], 0.5);
}

}  // namespace
}  // namespace tilewright::sweep
