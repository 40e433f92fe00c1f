// tw bench as a user meets it: files, exit codes, what is said when something is asked for wrongly.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Json = nlohmann::json;

const std::string kSmall = "--budget 0.05 --ceilings none --cache '' ";

Json read_json(const std::string& name) {
  std::ifstream file(work_folder() + "/" + name);
  return Json::parse(file);
}

TEST(Bench, RunWritesRowsOfTheStatedFieldsAndOneEnvironment) {
  const Outcome outcome = run_tw("bench run elu --set n=4096 --output elu.json " + kSmall);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Json run = read_json("elu.json");
  ASSERT_EQ(run.size(), 4u);  // three contenders and the environment
  const std::vector<std::string> fields = {
      "target",         "contender",  "device",    "shape",        "dtype",   "verified",
      "max_rel_err",    "tolerance",  "median_us", "ci95_us",      "samples", "device_us",
      "device_ci95_us", "compile_ms", "from_disk", "chosen",       "rate",    "unit",
      "floor_us",       "roofline",   "speedup",   "speedup_ci95", "verdict"};
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::string& field : fields) EXPECT_TRUE(run[i].contains(field)) << field;
    EXPECT_EQ(run[i].size(), fields.size());
    EXPECT_TRUE(run[i]["verified"].get<bool>());
    EXPECT_GT(run[i]["median_us"].get<double>(), 0);
    EXPECT_LE(run[i]["max_rel_err"].get<double>(), run[i]["tolerance"].get<double>());
    EXPECT_EQ(run[i]["shape"], "4096");
  }
  EXPECT_EQ(run[0]["contender"], "eager");
  EXPECT_EQ(run[0]["verdict"], "BASELINE");
  EXPECT_EQ(run[1]["contender"], "compiled");
  EXPECT_EQ(run[2]["contender"], "tile");
  EXPECT_TRUE(run[3].contains("environment"));
}

TEST(Bench, RunPrintsTheTableAndWritesNoFiles) {
  const std::filesystem::path empty = work_folder() + "/nothing_here";
  std::filesystem::create_directory(empty);
  const Outcome outcome = run_tw("bench run copy --set n=4096 " + kSmall, "cd nothing_here &&");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* part : {"copy 4096 f32", "BASELINE"})
    EXPECT_TRUE(contains(outcome.output, part)) << part << "\n" << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(empty));
}

TEST(Bench, ListNamesPairsKnobsAndSuites) {
  const Outcome outcome = run_tw("bench list");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* part : {"softmax", "columns=1024,8192,65536", "gpt2_block", "quick"})
    EXPECT_TRUE(contains(outcome.output, part)) << part;
}

TEST(Bench, WhatIsUnknownIsNamedWithWhatIsKnown) {
  const Outcome pair = run_tw("bench run softmaxx " + kSmall);
  EXPECT_EQ(pair.exit_code, 2);
  EXPECT_TRUE(contains(pair.output, "no pair or suite is named 'softmaxx'")) << pair.output;
  EXPECT_TRUE(contains(pair.output, "layernorm_gelu")) << pair.output;
  const Outcome knob = run_tw("bench run elu --set rows=4 " + kSmall);
  EXPECT_EQ(knob.exit_code, 2);
  EXPECT_TRUE(contains(knob.output, "elu.n")) << knob.output;
  for (const std::string name : {"tpu", "cpu:3"}) {
    const Outcome device = run_tw(fmt::format("bench run elu --set n=64 --device {} {}", name, kSmall));
    EXPECT_EQ(device.exit_code, 2);
    EXPECT_TRUE(contains(device.output, "unknown device '" + name + "'")) << device.output;
  }
}

TEST(Bench, ThreadsThatNoMachineHasAreRefused) {
  for (const std::string threads : {"-2", "100000"}) {
    const Outcome outcome = run_tw(fmt::format("bench run elu --threads {} {}", threads, kSmall));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "tw: " + threads + " threads: give 1 to 4096")) << outcome.output;
  }
}

TEST(Bench, NonsenseForAKnobIsRefusedWithWhatItTakes) {
  const std::pair<const char*, const char*> wrong[] = {
      {"elu --set n=-5", "--set n=-5: must be 1 to 1099511627776 (knob n: elements)"},
      {"elu --set n=0", "--set n=0: must be 1 to"},
      {"elu --set n=2^62", "must be 1 to 1099511627776 (knob n: elements)"},
      {"elu --set n=99999999999999999999", "--set n=99999999999999999999: not an integer (knob n"},
      {"elu --set n=many", "--set n=many: not an integer (knob n"},
      {"elu --set n=16 --set n=32",
       "--set n=16 and --set n=32: n is set twice; several values are one list: --set n=16,32"},
      {"softmax --set cols=16 --set columns=32", "columns is set twice"},
      {"elu --set elu.n=16 --set elu.n=16", "n is set twice"},
      {"elu --set n=1.5", "--set n=1.5: not an integer (knob n"},
      {"elu --set m=5", "no chosen pair has that knob; there are elu.n, elu.dtype"},
      {"elu --set softmax.n=5", "no chosen pair has that knob"},
      {"elu --set dtype=bool", "--set dtype=bool: must be one of f32, "},
      {"softmax --set columns=0", "--set columns=0: must be 1 to"},
      {"sincos10 --set shape=4x0", "each extent must be 1 to"},
      {"sincos10 --set shape=2^40x2^40", "elements are more than any memory holds"},
      {"attention --set kv_heads=-1", "--set kv_heads=-1: must be 0 to"},
      {"dropout_add_layernorm --set p=2", "--set p=2: must be 0 to 1 (knob p: probability"}};
  for (const auto& [arguments, message] : wrong) {
    const Outcome outcome = run_tw(std::string("bench run ") + arguments + " " + kSmall);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.output;
    EXPECT_TRUE(contains(outcome.output, message)) << arguments << "\n" << outcome.output;
  }
}

TEST(Bench, ARunThatEndsWith1SaysWhyOnItsLastLine) {
  const Outcome outcome = run_tw("bench run elu --set n=2^40 " + kSmall);  // 4 TB
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  const std::string& text = outcome.output;
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_EQ(last.find("tw: exit status 1: nothing was measured, for nothing fits: elu/"), 0u) << text;
}

TEST(Bench, WhatCannotBeStoredIsNotMeasured) {
  const std::string file = "/proc/run/run.json";
  for (const std::string command : {"run elu --set n=64 --budget 30", "sweep --count 1"}) {
    const Outcome outcome = run_tw(fmt::format("bench {} --ceilings none --output {}", command, file));
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, fmt::format("tw: --output {}: it cannot be written: ", file)))
        << outcome.output;
    EXPECT_FALSE(contains(outcome.output, "compiled")) << outcome.output;
  }
}

TEST(Bench, StoredRunsAreComparedAndReported) {
  ASSERT_EQ(run_tw("bench run elu --set n=4096 --output a.json " + kSmall).exit_code, 0);
  const Outcome compared = run_tw("bench compare a.json a.json");
  EXPECT_EQ(compared.exit_code, 0);
  EXPECT_TRUE(contains(compared.output, "SAME")) << compared.output;
  const Outcome csv = run_tw("bench report a.json --format csv");
  EXPECT_EQ(csv.exit_code, 0);
  EXPECT_TRUE(contains(csv.output, "elu,compiled,cpu,4096,f32")) << csv.output;
  for (const auto& [file, begins] : {std::pair{"a.html", "<!doctype html>"},
                                     {"a.csv", "target,contender,"},
                                     {"a.md", "| workload |"},
                                     {"b.json", "["}}) {
    EXPECT_EQ(run_tw(fmt::format("bench report a.json -o {}", file)).output, "");
    std::string line;
    std::getline(std::ifstream(work_folder() + "/" + file) >> std::ws, line);
    EXPECT_EQ(line.rfind(begins, 0), 0u) << file << ": " << line;
  }
  EXPECT_TRUE(contains(run_tw("bench compare a.json b.json").output, "SAME"));
  const Outcome summary = run_tw("bench report a.json 'elu*' --contenders compiled,eager --format summary");
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_TRUE(contains(summary.output, "| work | compiled | eager | rate, compiled |")) << summary.output;
  EXPECT_TRUE(contains(summary.output, "| elu 4096 f32 | ")) << summary.output;
  const Outcome none = run_tw("bench report a.json 'softmax*'");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.output, "a.json: no row is of what was asked for")) << none.output;
  const Outcome chart = run_tw("bench report a.json --format svg");  // measured without ceilings
  EXPECT_EQ(chart.exit_code, 2);
  EXPECT_TRUE(contains(chart.output, "no row has a share of the roofline to draw")) << chart.output;
  EXPECT_EQ(run_tw("bench compare a.json missing.json").exit_code, 2);
}

TEST(Bench, ExpectationsAreStoredAndJudged) {
  const std::string run = "bench run elu --set n=4096 --expectations exp --budget 0.3 --ceilings none ";
  const Outcome stored = run_tw(run + "--update-expectations");
  EXPECT_EQ(stored.exit_code, 0) << stored.output;
  EXPECT_TRUE(contains(stored.output, "expectations stored in exp/")) << stored.output;
  const Outcome judged = run_tw("bench run copy --set n=4096 --expectations exp --expect " + kSmall);
  EXPECT_EQ(judged.exit_code, 0) << judged.output;
  EXPECT_TRUE(contains(judged.output, "new")) << judged.output;  // copy was never stored
}

TEST(Bench, SignalsBeforeAnythingWasMeasuredLeaveTheOldFile) {
  const std::string run = "bench run elu --set n=2^24 --budget 600 --ceilings none --output old.json";
  std::ofstream(work_folder() + "/old.json") << "[]\n";
  const Outcome outcome = run_tw(run, "timeout --preserve-status -s INT 0.3");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.output;
  EXPECT_TRUE(read_json("old.json").empty()) << outcome.output;
}

TEST(Bench, SignalsKeepWhatWasMeasured) {
  for (const std::string signal : {"INT", "TERM"}) {  // Ctrl-C, and timeout's own
    const std::string file = "stopped_by_" + signal + ".json";
    Outcome outcome;
    for (const char* seconds : {"5", "30", "120"}) {  // until there is a row: a busy machine takes its time
      outcome = run_tw("bench run elu copy --set n=2^4..2^24 --budget 600 --ceilings none --output " + file,
                       "timeout --preserve-status -s " + signal + " " + seconds);
      if (outcome.output.find("\n[1/") != std::string::npos) break;
    }
    EXPECT_EQ(outcome.exit_code, 130) << outcome.output;
    const Json run = read_json(file);
    EXPECT_TRUE(run.back()["environment"]["interrupted"].get<bool>());
    EXPECT_EQ(run[0]["target"], "elu");
    EXPECT_TRUE(run[0]["verified"].get<bool>());
  }
}

}  // namespace
}  // namespace tilewright::tw
