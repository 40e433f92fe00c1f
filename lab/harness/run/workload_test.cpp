#include "harness/run/workload.h"

#include <gtest/gtest.h>

namespace tilewright::lab {
namespace {

Pair pair_named(std::string name, std::vector<Knob> knobs) {
  return {std::move(name), "", std::move(knobs), [](const Knobs&, LabDevice&) -> Result<PairInstance> {
            return failure(Failure::Kind::unsupported, "only for selection");
          }};
}

const Pair kPairs[] = {pair_named("elu", {{.name = "n", .values = {64, 128}, .doc = "elements"}}),
                       pair_named("softmax", {{.name = "cols", .values = {8}, .doc = "columns"}}),
                       pair_named("softmax_long", {{.name = "cols", .values = {9}, .doc = "columns"}})};
const Suite kSuites[] = {{"quick", "a minute", {{"elu", {"n=4"}}, {"softmax", {}}}}};

std::vector<std::string> chosen(std::vector<std::string> names, std::vector<std::string> settings = {}) {
  std::vector<std::string> texts;
  for (const Job& job : select_jobs(kPairs, kSuites, names, settings, DeviceKind::cpu)) {
    texts.push_back(job.pair->name + " " + job.knobs.to_string());
  }
  return texts;
}

std::string refusal(std::vector<std::string> names, std::vector<std::string> settings = {}) {
  try {
    chosen(std::move(names), std::move(settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

using Texts = std::vector<std::string>;

TEST(SelectJobs, NoNamesMeanEveryPair) {
  EXPECT_EQ(chosen({}), (Texts{"elu n=64", "elu n=128", "softmax cols=8", "softmax_long cols=9"}));
}

TEST(SelectJobs, SuitesBringTheirSettingsAndTheUsersStandAbove) {
  EXPECT_EQ(chosen({"quick"}), (Texts{"elu n=4", "softmax cols=8"}));
  EXPECT_EQ(chosen({"quick"}, {"n=7"}), (Texts{"elu n=7", "softmax cols=8"}));
}

TEST(SelectJobs, PatternsMatchAndTheSameJobRunsOnce) {
  EXPECT_EQ(chosen({"soft*", "softmax"}), (Texts{"softmax cols=8", "softmax_long cols=9"}));
  EXPECT_EQ(chosen({"*_long"}), (Texts{"softmax_long cols=9"}));
}

TEST(SelectJobs, ASettingForOnePairLeavesTheOthers) {
  EXPECT_EQ(chosen({"soft*"}, {"softmax.cols=3"}), (Texts{"softmax cols=3", "softmax_long cols=9"}));
}

TEST(SelectJobs, WhatNamesItsPairHoldsOverWhatIsSaidToAll) {
  for (const Texts& settings : {Texts{"cols=3", "softmax.cols=4"}, Texts{"softmax.cols=4", "cols=3"}})
    EXPECT_EQ(chosen({"soft*"}, settings), (Texts{"softmax cols=4", "softmax_long cols=3"}));
}

TEST(SelectJobs, AKnobThatIsSetTwiceIsRefused) {
  EXPECT_EQ(refusal({"elu"}, {"n=16", "n=32"}),
            "--set n=16 and --set n=32: n is set twice; several values are one list: --set n=16,32");
  EXPECT_EQ(refusal({"soft*"}, {"softmax.cols=3", "cols=5", "softmax.cols=4"}),
            "--set softmax.cols=3 and --set softmax.cols=4: cols is set twice; several values are one list: "
            "--set softmax.cols=3,4");
}

TEST(SelectJobs, UnknownNamesAndKnobsListWhatThereIs) {
  EXPECT_EQ(refusal({"sofmax"}),
            "no pair or suite is named 'sofmax'; there are quick, elu, softmax, softmax_long");
  EXPECT_EQ(refusal({"elu"}, {"cols=3"}), "--set cols=3: no chosen pair has that knob; there are elu.n");
  EXPECT_EQ(refusal({"elu"}, {"softmax.n=3"}),
            "--set softmax.n=3: no chosen pair has that knob; there are elu.n");
}

TEST(Digest, EveryByteAndTheOrderCount) {
  std::vector<unsigned char> bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  const auto original = digest(bytes.data(), bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
      EXPECT_NE(digest(bytes.data(), bytes.size()), original) << i << " " << bit;
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
    }
  }
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  EXPECT_NE(digest(bytes.data(), bytes.size()), original);
}

}  // namespace
}  // namespace tilewright::lab
