// tw train as a user meets it: reports, the folder, interruption and resumption to the bit, damage, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tw/run_command.h"

namespace tilewright::tw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Train : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(path("run"));
    fs::remove_all(path("whole"));
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 60; ++i) text << "the quick brown fox " << i << " jumps over the lazy dog\n";
  }
  static std::string path(const std::string& name) { return fmt::format("{}/{}", work_folder(), name); }
  // A few steps of the smallest form.
  static std::string arguments(int steps) {
    return fmt::format("train char --data text.txt --small --steps {} --sample 0 --quiet ", steps);
  }
};

TEST_F(Train, ReportsAreLinesOfJsonAndTheLossFalls) {
  const Outcome outcome = run_tw(arguments(16) + "--json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<Json> reports;
  for (std::string line; std::getline(lines, line);) reports.push_back(Json::parse(line));
  ASSERT_EQ(reports.size(), 8u);
  for (const char* field :
       {"step", "train_loss", "val_loss", "best_val_loss", "tokens_per_s", "seconds", "peak_bytes"})
    EXPECT_TRUE(reports.front().contains(field)) << field;
  EXPECT_EQ(reports.back()["step"], 16);
  EXPECT_LT(reports.back()["val_loss"].get<double>(), reports.front()["val_loss"].get<double>() - 0.1);
  EXPECT_GT(reports.back()["peak_bytes"].get<double>(),
            3 * 4 * 800'000);  // parameters and two moments in f32
}

TEST_F(Train, NarrowProductsLearnAsWell) {
  for (const char* precision : {"bf16", "f16"}) {
    const Outcome outcome = run_tw(arguments(16) + "--json --precision " + precision);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    const auto loss = [](const std::string& line) { return Json::parse(line)["val_loss"].get<double>(); };
    const std::string first = outcome.output.substr(0, outcome.output.find('\n'));
    const std::string last = outcome.output.substr(outcome.output.rfind('\n', outcome.output.size() - 2) + 1);
    EXPECT_LT(loss(last), loss(first) - 0.1) << precision;
  }
}

TEST_F(Train, AnInterruptedTrainingGoesOnToTheSameBits) {
  ASSERT_EQ(run_tw(arguments(16) + "--out whole").exit_code, 0);
  // Interrupted when the first report is there, which is a minute's wait at most.
  const Outcome cut =
      run_tw(arguments(16) +
                 "--out run & pid=$!; for i in $(seq 1200); do [ -e run/log.jsonl ] && break; "
                 "sleep 0.05; done; kill -TERM $pid; wait $pid )",
             "(");
  ASSERT_EQ(cut.exit_code, 130) << cut.output;
  ASSERT_FALSE(fs::exists(path("run/step-00000016.safetensors"))) << "it ended before the signal came";
  const Outcome rest = run_tw("train char --resume run --sample 0 --quiet");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_TRUE(read_work_file("run/step-00000016.safetensors") ==
              read_work_file("whole/step-00000016.safetensors"));
}

TEST_F(Train, ADamagedCheckpointIsNamedAndTheOneBeforeItTaken) {
  ASSERT_EQ(run_tw(arguments(8) + "--out run").exit_code, 0);
  const std::string last = path("run/step-00000008.safetensors");
  std::string bytes = read_work_file("run/step-00000008.safetensors");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(last, std::ios::binary) << bytes;
  const Outcome outcome = run_tw("train char --resume run --sample 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "step-00000008.safetensors is damaged")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "going on from step 7")) << outcome.output;
}

TEST_F(Train, AnotherTextOrSeedIsNoResumption) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  std::ofstream(path("other.txt")) << read_work_file("text.txt") << "the end\n";
  const Outcome text = run_tw("train char --resume run --data other.txt --sample 0");
  EXPECT_NE(text.exit_code, 0);
  EXPECT_TRUE(contains(text.output, "its text is ")) << text.output;
  const Outcome seed = run_tw("train char --resume run --seed 3");
  EXPECT_EQ(seed.exit_code, 2);
  EXPECT_TRUE(contains(seed.output, "excludes")) << seed.output;
}

TEST_F(Train, ATextWithoutLinesIsLearntAndWritten) {
  std::ofstream text(path("line.txt"));
  for (int i = 0; i < 300; ++i) text << "abcab";
  text.close();
  const Outcome outcome = run_tw("train char --data line.txt --small --steps 2 --sample 5 --quiet");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(Train, MistakesSayWhatToDo) {
  std::ofstream(path("short.txt")) << "too short";
  std::ofstream(path("file")) << "x";
  fs::create_directories(path("full"));
  std::ofstream(path("full/something")) << "x";
  const std::pair<std::string, std::string> cases[] = {
      {"train char", "--data FILE says what to learn from"},
      {"train char --data none.txt", "none.txt"},
      {"train char --data short.txt --small", "the text has 9 bytes"},
      {"train word --data text.txt", "there is no recipe 'word'"},
      {"train char --data text.txt --small --precision f8", "there is no precision 'f8'"},
      {"train char --data text.txt --small --out full", "--resume full goes on with it"},
      {"train char --resume full", "full is no folder of a training"},
      {"train char --resume nowhere", "nowhere is no folder of a training"},
  };
  for (const auto& [arguments, said] : cases) {
    const Outcome outcome = run_tw(arguments + " --quiet");
    EXPECT_NE(outcome.exit_code, 0) << arguments;
    EXPECT_TRUE(contains(outcome.output, said)) << arguments << "\n" << outcome.output;
  }
}

}  // namespace
}  // namespace tilewright::tw
