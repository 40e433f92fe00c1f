#include "harness/run/record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

std::string folder() {
  const auto path =
      std::filesystem::temp_directory_path() / ("tilewright_record_" + std::to_string(getpid()));
  std::filesystem::create_directories(path);
  return path.string();
}

TEST(Record, ReadsBackWhatItWrote) {
  RunRecord run = synthetic::sample_run();
  run.rows[1].device_us = 950;
  run.rows[1].device_ci95_us = Interval{940, 960};
  run.rows[1].chosen = "torch.compile";
  run.rows[1].compile_ms = 31.5;
  run.rows[1].from_disk = true;
  run.rows[1].waited_us = 12.5;
  const auto read = parse_run(to_json(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->rows, run.rows);
  // The notes of the rows were added to the environment's.
  EXPECT_EQ(read->environment.notes.size(), 2u);
  run.environment.notes = read->environment.notes;
  EXPECT_EQ(read->environment, run.environment);
}

TEST(Record, ARowHasExactlyTheAgreedFieldsInOrder) {
  RunRecord run;
  run.rows.push_back(synthetic::row_of("elu", "tile", "4096", 2, Verdict::same));
  const std::string json = to_json(run);
  std::vector<std::string> fields;
  for (auto at = json.find('"'); at < json.find("\"environment\""); at = json.find('"', at + 1)) {
    const auto end = json.find('"', at + 1);
    if (json[end + 1] == ':') fields.push_back(json.substr(at + 1, end - at - 1));
    at = end;
  }
  EXPECT_EQ(fields, (std::vector<std::string>{
                        "target",         "contender",  "device",    "shape",        "dtype",   "verified",
                        "max_rel_err",    "tolerance",  "median_us", "ci95_us",      "samples", "device_us",
                        "device_ci95_us", "compile_ms", "from_disk", "chosen",       "rate",    "unit",
                        "floor_us",       "roofline",   "speedup",   "speedup_ci95", "verdict"}));
}

TEST(Record, WhatAStepWaitedForIsAFieldOfThoseThatWait) {
  RunRecord run;
  run.rows.push_back(synthetic::row_of("data_loading", "prefetch", "B1", 2, Verdict::same));
  EXPECT_EQ(to_json(run).find("waited_us"), std::string::npos);
  run.rows[0].waited_us = 12.5;
  EXPECT_NE(to_json(run).find("\"waited_us\": 12.5"), std::string::npos) << to_json(run);
}

TEST(Record, WhatWasNotMeasuredIsNull) {
  RunRecord run;
  run.rows.push_back(synthetic::untimed_row("elu", "tile", Verdict::wrong, ""));
  run.rows[0].max_rel_err = std::numeric_limits<double>::infinity();
  const std::string json = to_json(run);
  EXPECT_NE(json.find("\"median_us\": null"), std::string::npos);
  EXPECT_NE(json.find("\"max_rel_err\": null"), std::string::npos);
  EXPECT_FALSE(parse_run(json)->rows[0].median_us);
}

TEST(Record, TheObjectFormIsReadToo) {
  const std::string list = to_json(synthetic::sample_run());
  const auto cut = list.rfind("{\n  \"environment\"");
  const std::string object =
      "{\"results\": " + list.substr(0, list.rfind(',', cut)) + "], \"environment\": {\"seed\": 9}}";
  const auto run = parse_run(object);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->rows.size(), synthetic::sample_run().rows.size());
  EXPECT_EQ(run->environment.seed, 9u);
}

TEST(Record, MalformedTextIsAFailureThatSaysSo) {
  for (const char* bad : {"", "{", "[1]", "[{}]", "{\"results\": 3}", "null", "[{\"target\": 3}]", "[[]]",
                          "[]", "[{\"environment\": {\"work\": [1]}}]", "[{\"environment\": 4}]"}) {
    const auto run = parse_run(bad);
    EXPECT_FALSE(run.ok()) << bad;
    if (!run.ok()) {
      EXPECT_EQ(run.error().kind, Failure::Kind::invalid) << bad;
    }
  }
  std::string json = to_json(synthetic::sample_run());
  for (std::size_t cut = 0; cut + 3 < json.size(); cut += 997)
    EXPECT_FALSE(parse_run(json.substr(0, cut)).ok()) << cut;
  json.replace(json.find("FASTER"), 6, "FASTES");
  EXPECT_NE(parse_run(json).error().message.find("unknown verdict"), std::string::npos);
}

TEST(Record, EveryVerdictHasANameThatReadsBack) {
  for (int v = 0; v <= static_cast<int>(Verdict::uncompared); ++v) {
    EXPECT_EQ(parse_verdict(name(static_cast<Verdict>(v))), static_cast<Verdict>(v));
  }
  EXPECT_FALSE(parse_verdict("?"));
}

TEST(WriteFile, ReplacesTheFileAndLeavesNothingBeside) {
  const std::string path = folder() + "/sub/run.json";
  ASSERT_TRUE(write_file(path, "old").ok());
  ASSERT_TRUE(write_file(path, "new").ok());
  EXPECT_EQ(*read_file(path), "new");
  const std::filesystem::directory_iterator files(folder() + "/sub");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(WriteFile, AReaderNeverSeesHalfAFile) {
  const std::string path = folder() + "/race.json";
  const std::string a(100000, 'a'), b(100000, 'b');
  ASSERT_TRUE(write_file(path, a).ok());
  std::jthread writer([&] {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(write_file(path, i % 2 == 0 ? b : a).ok());
  });
  for (int i = 0; i < 50; ++i) {
    const auto seen = read_file(path);
    EXPECT_TRUE(*seen == a || *seen == b);
  }
}

TEST(WriteFile, FailuresNameTheFile) {
  const Status written = write_file("/proc/nowhere/run.json", "x");
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("/proc/nowhere/run.json"), std::string::npos);
  EXPECT_FALSE(write_file("/dev/full/run.json", "x").ok());
  EXPECT_EQ(read_file("/nowhere/run.json").error().kind, Failure::Kind::not_found);
  EXPECT_NE(read_run("/nowhere/run.json").error().message.find("/nowhere/run.json"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::lab
