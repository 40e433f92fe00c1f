// The convention that all subcommands keep to: what --json, --output, --quiet and NO_COLOR do.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Json = nlohmann::json;

const std::string kRun = "bench run elu --set n=4096 --budget 0.05 --ceilings none --cache '' ";

// Every subcommand that has results, asked for something small.
const std::string kCommands[] = {
    "devices",
    "doctor --python /nonexistent",
    "cache info",
    "cache verify --cache empty",
    "cache clear --cache empty",
    "explain elu --set n=4096 --no-time",
    "kernel list elu --set n=4096",
    "kernel show elu --set n=4096",
    "kernel show --tile elu --set n=4096",
    "kernel run mine.cpp --budget 0.02",
    "roofline dot --hw h100 --n 8",
    "roofline dot --hw h100 --sweep n=1:3",
    "roofline softmax --hw h100 --set cols=256 --set elements=65536",
    "roofline table h100",
    "bench list",
    kRun,
    "bench compare run.json run.json",
    "bench report run.json",
    "bench sweep --families",
    "bench sweep --seed 17 --count 1 --family pointwise --max-bytes 64KiB --ceilings none --budget 0.02",
};

class Output : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(run_tw("kernel edit elu --set n=4096 -o mine.cpp --quiet").output, "");
    ASSERT_EQ(run_tw(kRun + "--quiet -o run.json").output, "");
  }
};

TEST_F(Output, JsonIsAllThatIsOnStandardOutput) {
  for (const std::string& command : kCommands) {
    const Outcome outcome = run_tw(command + " --json 2>said; exit $?");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_TRUE(Json::accept(outcome.output)) << command << "\n" << outcome.output;
  }
}

TEST_F(Output, AFileTakesWhatStandardOutputHadAndQuietLeavesNothingElse) {
  for (const std::string& command : kCommands)
    for (const std::string name : {"out.txt", "out.json"}) {
      std::filesystem::remove(fmt::format("{}/{}", work_folder(), name));
      const Outcome outcome = run_tw(fmt::format("{} --quiet --output {}", command, name));
      EXPECT_EQ(outcome.exit_code, 0) << command;
      EXPECT_EQ(outcome.output, "") << command;
      EXPECT_EQ(Json::accept(read_work_file(name)), name == "out.json") << command << "\n"
                                                                        << read_work_file(name);
    }
  for (const std::string command : {"bench list", "roofline table h100", "kernel show elu --set n=4096"}) {
    EXPECT_EQ(run_tw(command + " -o same.txt").output, "");
    EXPECT_EQ(read_work_file("same.txt"), run_tw(command).output);
  }
}

TEST_F(Output, AMeasuredTableIsShownToWhomWatchesWhereItIsNotTheResult) {
  const Outcome outcome = run_tw(kRun + "--json 2>said >out; cat said");
  for (const char* part : {"1 workloads on cpu", "BASELINE"})
    EXPECT_TRUE(contains(outcome.output, part)) << part << "\n" << outcome.output;
  EXPECT_TRUE(Json::accept(read_work_file("out"))) << read_work_file("out");
}

TEST_F(Output, WhatCannotBeWrittenLeavesTheOldFile) {
  std::ofstream(work_folder() + "/kept") << "old\n";
  const Outcome outcome = run_tw("bench list -o kept/list.txt");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "tw: --output kept/list.txt: it cannot be written: "))
      << outcome.output;
  EXPECT_EQ(read_work_file("kept"), "old\n");
}

TEST_F(Output, ADeviceTakesTheResults) {
  EXPECT_EQ(run_tw("bench list -o /dev/null").output, "");
  EXPECT_EQ(run_tw("bench list -o /dev/stdout | cat").output, run_tw("bench list").output);
  const Outcome full = run_tw("bench list -o /dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_TRUE(contains(full.output, "tw: --output /dev/full: it cannot be written")) << full.output;
}

TEST_F(Output, ColoursAreForTerminalsAndNotWithNoColor) {
  const std::string green = "\x1b[32mFASTER";
  std::string run = read_work_file("run.json");
  for (auto at = run.find("\"verdict\": \""); at != std::string::npos; at = run.find("\"verdict\": \"", at)) {
    at += 12;
    run.replace(at, run.find('"', at) - at, "FASTER");
  }
  std::ofstream(work_folder() + "/faster.json") << run;
  const std::string report = "bench report faster.json";
  EXPECT_TRUE(contains(run_tw_on_terminal(report, "unset NO_COLOR;").output, green));
  EXPECT_TRUE(contains(run_tw_on_terminal(report, "NO_COLOR=").output, green)) << "empty counts as not set";
  const std::string plain = run_tw_on_terminal(report, "NO_COLOR=1").output;
  EXPECT_TRUE(contains(plain, "FASTER") && !contains(plain, "\x1b[")) << plain;
  EXPECT_FALSE(contains(run_tw(report, "unset NO_COLOR;").output, "\x1b["));
}

}  // namespace
}  // namespace tilewright::tw
