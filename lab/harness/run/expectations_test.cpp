#include "harness/run/expectations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

using synthetic::run_of;
using synthetic::timed;

Expectations expecting(double us) {
  return update_expectations(run_of({timed(us)}), {"here", {}}, Regressions::refuse).merged;
}

Outcome outcome_of(const Row& row, const Expectations& expectations, const Rerun& rerun = {}) {
  return check_expectations({row}, expectations, {}, rerun).at(0).outcome;
}

std::string expectations_folder() {
  return (std::filesystem::temp_directory_path() / ("tilewright_expect_" + std::to_string(getpid())))
      .string();
}

TEST(Expectations, WithinAQuarterIsAsExpected) {
  EXPECT_EQ(outcome_of(timed(1240), expecting(1000)), Outcome::as_expected);
  EXPECT_EQ(outcome_of(timed(1400), expecting(1000)), Outcome::regression);
  EXPECT_EQ(outcome_of(timed(950), expecting(2000)), Outcome::improvement);
  EXPECT_EQ(outcome_of(timed(1000), {"here", {}}), Outcome::unknown);
}

TEST(Expectations, OverlappingIntervalsAreAsExpected) {
  Row noisy = timed(1400);
  noisy.ci95_us = Interval{1010, 1900};  // the expectation's ends at 1020
  EXPECT_EQ(outcome_of(noisy, expecting(1000)), Outcome::as_expected);
}

TEST(Expectations, ADeviationMustSurviveItsReruns) {
  int calls = 0;
  const auto once_slow = [&](const Row&) -> std::optional<Row> { return timed(++calls == 1 ? 1400 : 1010); };
  EXPECT_EQ(outcome_of(timed(1400), expecting(1000), once_slow), Outcome::as_expected);
  EXPECT_EQ(calls, 2);
  const auto always_slow = [](const Row&) -> std::optional<Row> { return timed(1450); };
  const auto check = check_expectations({timed(1400)}, expecting(1000), {}, always_slow).at(0);
  EXPECT_EQ(check.outcome, Outcome::regression);
  EXPECT_EQ(check.reruns, 2);
  EXPECT_EQ(check.text, "1400 us, expected 1000 us (+40 %), confirmed by 2 reruns");
}

TEST(Expectations, WrongRowsAreNeverAsExpected) {
  Row wrong = timed(1000);
  wrong.verified = false;
  EXPECT_EQ(outcome_of(wrong, expecting(1000)), Outcome::unusable);
  Row impossible = timed(1000);
  impossible.verdict = Verdict::impossible;
  EXPECT_EQ(outcome_of(impossible, expecting(1000)), Outcome::unusable);
}

TEST(UpdateExpectations, KeepsWhereTheFiguresComeFrom) {
  const Expectation e = expecting(1000).entries.at(0);
  EXPECT_EQ(e.commit, "0123456789ab");
  EXPECT_EQ(e.date, "2026-11-21T10:20:30Z");
  EXPECT_EQ(e.samples, 40);
  EXPECT_EQ(e.cpu, "AMD EPYC (family 26 model 2)");
}

TEST(UpdateExpectations, RefusesWhatMayNotBeARecord) {
  Row unverified = timed(1000), few = timed(1000), fast = timed(1000), impossible = timed(1000);
  unverified.verified = false;
  few.samples = 3;
  fast.roofline = 1.2;
  impossible.verdict = Verdict::impossible;
  for (const Row& row : {unverified, few, fast, impossible}) {
    const auto update = update_expectations(run_of({row}), {"here", {}}, Regressions::accept);
    EXPECT_TRUE(update.merged.entries.empty());
    EXPECT_EQ(update.refused.size(), 1u);
  }
}

TEST(UpdateExpectations, RegressionsAreStoredOnlyWhenAskedFor) {
  const auto refused = update_expectations(run_of({timed(1500)}), expecting(1000), Regressions::refuse);
  EXPECT_EQ(refused.merged, expecting(1000));
  EXPECT_NE(refused.refused.at(0).find("slower than what is stored"), std::string::npos);
  const auto accepted = update_expectations(run_of({timed(1500)}), expecting(1000), Regressions::accept);
  EXPECT_EQ(accepted.merged.entries.at(0).median_us, 1500);
  EXPECT_EQ(accepted.merged.entries.size(), 1u);
}

TEST(UpdateExpectations, WhatTheRunDidNotMeasureStays) {
  Row other = timed(950);
  other.shape = "1024";
  const auto update = update_expectations(run_of({other}), expecting(1000), Regressions::refuse);
  ASSERT_EQ(update.merged.entries.size(), 2u);
  EXPECT_EQ(update.merged.entries[0].shape, "1024");  // sorted, so that files differ only where figures do
}

TEST(ExpectationsFile, ReadsBackWhatItWrote) {
  ASSERT_TRUE(write_expectations(expecting(1000), expectations_folder()).ok());
  const auto read = read_expectations(expectations_folder(), "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, expecting(1000));
}

TEST(ExpectationsFile, AMissingFileIsAnEmptySet) {
  const auto read = read_expectations(expectations_folder(), "never-seen");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->entries.empty());
  EXPECT_EQ(read->key, "never-seen");
}

TEST(ExpectationsFile, EntriesThatCannotBeTrueAreRefused) {
  const auto refused = [](const std::function<void(Expectation&)>& spoil) {
    Expectations expectations = expecting(1000);
    spoil(expectations.entries[0]);
    EXPECT_TRUE(write_expectations(expectations, expectations_folder()).ok());
    const auto read = read_expectations(expectations_folder(), "here");
    return !read.ok() && read.error().message.find("elu/tile") != std::string::npos;
  };
  EXPECT_TRUE(refused([](Expectation& e) { e.roofline = 3.9; }));  // 31 TB/s of an 8 TB/s part
  EXPECT_TRUE(refused([](Expectation& e) { e.samples = 1; }));
  EXPECT_TRUE(refused([](Expectation& e) { e.median_us = 0; }));
  EXPECT_TRUE(refused([](Expectation& e) { e.ci95_us = {1, 2}; }));
  EXPECT_TRUE(refused([](Expectation& e) { e.commit.clear(); }));
}

TEST(ExpectationsFile, OfOtherHardwareOrMalformedIsRefused) {
  ASSERT_TRUE(write_file(expectations_folder() + "/there.json", to_json(expecting(1000))).ok());
  EXPECT_NE(read_expectations(expectations_folder(), "there").error().message.find("for the hardware 'here'"),
            std::string::npos);
  ASSERT_TRUE(write_file(expectations_folder() + "/broken.json", "{\"key\": \"broken\"}").ok());
  EXPECT_FALSE(read_expectations(expectations_folder(), "broken").ok());
}

}  // namespace
}  // namespace tilewright::lab
