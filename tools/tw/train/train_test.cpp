// tw train as a user meets it: reports, the folder, interruption and resumption to the bit, damage, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tw/command/run_command.h"

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
  static std::vector<Json> log_of(const std::string& folder) {
    std::istringstream lines(read_work_file(folder + "/log.jsonl"));
    std::vector<Json> reports;
    for (std::string line; std::getline(lines, line);) reports.push_back(Json::parse(line));
    return reports;
  }
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
  for (const char* field : {"step", "train_loss", "val_loss", "best_val_loss", "tokens_per_s", "seconds",
                            "peak_bytes", "grad_norm", "learning_rate", "mfu"})
    EXPECT_TRUE(reports.front().contains(field)) << field;
  EXPECT_GT(reports.back()["mfu"].get<double>(), 0);
  EXPECT_LT(reports.back()["mfu"].get<double>(), 1);
  EXPECT_EQ(reports.back()["step"], 16);
  EXPECT_LT(reports.back()["val_loss"].get<double>(), reports.front()["val_loss"].get<double>() - 0.1);
  EXPECT_GT(reports.back()["peak_bytes"].get<double>(),
            3 * 4 * 800'000);  // parameters and two moments in f32
}

TEST_F(Train, NarrowProductsLearnAsWell) {
  for (const char* precision : {"bf16", "f16", "tf32", "fp8", "fp8-block"}) {
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
  const std::vector<Json> one = log_of("run"), other = log_of("whole");
  ASSERT_EQ(one.size(), other.size()) << "no step is told twice";
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i]["step"], other[i]["step"]);
    EXPECT_EQ(one[i]["val_loss"], other[i]["val_loss"]);
    const double before = i > 0 ? one[i - 1]["seconds"].get<double>() : 0;
    EXPECT_GT(one[i]["seconds"].get<double>(), before) << "time goes on, too";
  }
}

TEST_F(Train, AFolderWithoutACheckpointBeginsAnew) {
  ASSERT_EQ(run_tw(arguments(4) + "--out run").exit_code, 0);
  for (const char* name : {"manifest", "step-00000003.safetensors", "step-00000004.safetensors"})
    fs::remove(path(std::string("run/") + name));
  const Outcome outcome = run_tw("train char --resume run --sample 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "run has no checkpoint yet: beginning at step 0")) << outcome.output;
  EXPECT_EQ(log_of("run").size(), 4U);
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

TEST_F(Train, AFullDiskEndsItAndTheOldCheckpointsStay) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  // Files of the next process end at 1 MB, as on a disk that is full.
  const Outcome outcome = run_tw(arguments(4) + "--out whole", "ulimit -f 1000; trap '' XFSZ;");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "step-00000001.safetensors")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "File too large")) << outcome.output;
}

// In its place bf16's own overflow would do; a rate of 1e10 makes one in any precision.
TEST_F(Train, ANaNEndsItWithItsStepItsBatchAndItsOperation) {
  const Outcome outcome = run_tw(arguments(16) + "--rate 1e10 --out run");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  for (const char* part : {"loss is NaN", "batch ", " of seed 1337: 12 rows of 64 bytes, from byte ",
                           "the first operation that made a NaN or an infinity, in step ", " infinit",
                           "lies between", "a lower --rate"})
    EXPECT_TRUE(contains(outcome.output, part)) << part << " is not in\n" << outcome.output;
}

TEST_F(Train, ASpikeIsAWarningOrTheEnd) {
  // A text of two letters is soon learnt; then a learning rate that still rises throws the model about, which
  // is a spike for two seeds of three. Which ones depends on the machine's roundings.
  std::ofstream letters(path("letters.txt"));
  for (int i = 0; i < 20000; ++i) letters << "ab";
  letters.close();
  const std::string spiky = "train char --data letters.txt --small --steps 60 --sample 0 --rate 4 --seed ";
  Outcome stopped;
  int seed = 0;
  do {
    stopped = run_tw(spiky + std::to_string(++seed) + " --stop-on-spike");
  } while (stopped.exit_code == 0 && seed < 10);
  EXPECT_EQ(stopped.exit_code, 1) << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "stopped, as --stop-on-spike says")) << stopped.output;
  const Outcome warned = run_tw(spiky + std::to_string(seed));
  EXPECT_EQ(warned.exit_code, 0) << warned.output;
  EXPECT_TRUE(contains(warned.output, "a spike: above ")) << warned.output;
}

TEST_F(Train, AccumulationIsTheSameTraining) {
  const auto losses = [&](const std::string& more) {
    std::vector<double> found;
    std::istringstream lines(run_tw(arguments(12) + "--json " + more).output);
    for (std::string line; std::getline(lines, line);)
      found.push_back(Json::parse(line)["train_loss"].get<double>());
    return found;
  };
  const std::vector<double> whole = losses(""), parts = losses("--accumulate 3");
  ASSERT_EQ(whole.size(), 12U);
  ASSERT_EQ(parts.size(), 12U);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-4);
}

TEST_F(Train, AnAverageOfTheWeightsIsValidatedKeptAndResumed) {
  const auto reports = [&](const std::string& more) {
    std::vector<Json> found;
    std::istringstream lines(run_tw(arguments(16) + "--json " + more).output);
    for (std::string line; std::getline(lines, line);) found.push_back(Json::parse(line));
    return found;
  };
  const std::vector<Json> plain = reports(""), averaged = reports("--ema 0.9 --out whole");
  ASSERT_EQ(plain.size(), 8U);
  ASSERT_EQ(averaged.size(), 8U);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(averaged[i]["train_loss"], plain[i]["train_loss"]) << "the training is the same";
    // The average is behind the weights, whose loss falls.
    EXPECT_GT(averaged[i]["val_loss"].get<double>(), plain[i]["val_loss"].get<double>());
  }
  EXPECT_LT(averaged.back()["val_loss"].get<double>(), averaged.front()["val_loss"].get<double>());
  // The last two checkpoints are of steps 14 and 16: without the newer one the training goes on from there.
  const std::string last = "whole/step-00000016.safetensors", ended = read_work_file(last);
  fs::remove(path(last));
  const Outcome rest = run_tw("train char --resume whole --sample 0 --quiet");
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_TRUE(read_work_file(last) == ended);
  EXPECT_TRUE(contains(ended.substr(0, 20000), "average.wte.weight"));
}

TEST_F(Train, NarrowMomentsTakeHalfOfTheirBytes) {
  const auto trained = [&](const std::string& more) {
    const Outcome outcome = run_tw(arguments(16) + "--json " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return Json::parse(outcome.output.substr(outcome.output.rfind('\n', outcome.output.size() - 2) + 1));
  };
  const Json wide = trained("--out whole"), narrow = trained("--moments bf16 --out run");
  EXPECT_NEAR(narrow["val_loss"].get<double>(), wide["val_loss"].get<double>(), 0.05);
  // Eight of 12 bytes a parameter are left.
  const auto size = [&](const std::string& folder) {
    return static_cast<double>(fs::file_size(path(folder + "/step-00000016.safetensors")));
  };
  EXPECT_NEAR(size("run") / size("whole"), 8.0 / 12, 0.01);
  const Outcome rest = run_tw("train char --resume run --sample 0 --quiet");
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
}

TEST_F(Train, MomentsOf8BitsAreTakenUpAgainToTheBit) {
  const auto size = [&](const std::string& folder) {
    return static_cast<double>(fs::file_size(path(folder + "/step-00000016.safetensors")));
  };
  const Outcome wide = run_tw(arguments(16) + "--json --out wide");
  EXPECT_EQ(wide.exit_code, 0) << wide.output;
  for (const auto& [moments, bytes] :
       {std::pair{"f8e4m3", 4 + 2 * (1 + 4.0 / 256)}, {"f8e4m3,bf16", 7 + 4.0 / 256}}) {
    SCOPED_TRACE(moments);
    const Outcome whole = run_tw(arguments(16) + "--json --out whole --moments " + moments);
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    EXPECT_NEAR(size("whole") / size("wide"), bytes / 12, 0.01);
    const std::string last = "whole/step-00000016.safetensors", ended = read_work_file(last);
    ASSERT_TRUE(contains(read_work_file("whole/manifest"), "step-00000016"));
    // The checkpoint before the last is taken, and goes on to the same bits.
    fs::remove(path(last));
    const Outcome rest = run_tw("train char --resume whole --sample 0 --quiet");
    EXPECT_EQ(rest.exit_code, 0) << rest.output;
    EXPECT_TRUE(read_work_file(last) == ended);
    fs::remove_all(path("whole"));
  }
}

// Codes of 8 bits have two zeros. With nothing left to do a training writes what it has read.
TEST_F(Train, WhatIsTakenUpAgainHasTheBitsOfTheFile) {
  ASSERT_EQ(run_tw(arguments(4) + "--moments f8e4m3 --out run").exit_code, 0);
  const std::string last = "run/step-00000004.safetensors", before = read_work_file(last);
  fs::remove(path("run/step-00000003.safetensors"));
  const Outcome rest = run_tw("train char --resume run --sample 0 --quiet");
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_TRUE(read_work_file(last) == before);
}

// An option before a subcommand is one of a training's.
TEST_F(Train, OptionsOfATrainingAreRefusedBeforeOtherCommands) {
  const std::pair<std::string, std::string> cases[] = {
      {"train --precision bf16 bytes", "bytes excludes --precision"},
      {"train --device reference bytes", "bytes excludes --device"},
      {"train --small report nowhere", "report excludes --small"},
      {"train char bytes", "bytes excludes recipe"},
  };
  for (const auto& [arguments, said] : cases) {
    const Outcome outcome = run_tw(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.output, said)) << arguments << "\n" << outcome.output;
  }
}

TEST_F(Train, BytesOfAParameterAreThoseOfTheTypes) {
  const Outcome outcome = run_tw("train bytes --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Json recipes = Json::parse(outcome.output);
  // The published sums of mixed precision with f32, of DeepSeek-V3's types (arXiv 2412.19437, 3.3), of
  // FP8-LM's (arXiv 2310.18313) and of Nanotron's; what is of 8 bits by blocks has a scale of 4 bytes for 256
  // beside it.
  constexpr double kScale = 4.0 / 256;
  const double wanted[] = {20, 16, 15, 9, 7}, scales[] = {0, 0, 0, 2 * kScale, 4 * kScale};
  ASSERT_EQ(recipes.size(), std::size(wanted));
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const Json& r = recipes[i];
    EXPECT_EQ(r["planned"].get<double>(), wanted[i] + scales[i]);
    EXPECT_NEAR(r["total"].get<double>(), wanted[i] + scales[i], 0.01 * wanted[i]) << r;
    double sum = 0;
    for (const char* part : {"weights", "masters", "gradient", "sum", "moments"})
      sum += r[part].get<double>();
    EXPECT_NEAR(sum, r["total"].get<double>(), 0.01 * wanted[i]) << r;
    EXPECT_LT(r["last_loss"].get<double>(), r["first_loss"].get<double>() - 0.5) << "it learns: " << r;
  }
  const Outcome table = run_tw("train bytes");
  for (const char* types : {"fp8 weights, bf16 moments", "fp8, with 16 bits of masters, sums and squares"})
    EXPECT_TRUE(contains(table.output, types)) << table.output;
}

TEST_F(Train, LessMemoryIsTheSameTraining) {
  const auto trained = [&](const std::string& more) {
    std::istringstream lines(run_tw(arguments(6) + "--json " + more).output);
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);)
      found.push_back(Json::parse(line)["train_loss"].get<double>());
    return found;
  };
  const Outcome too_little = run_tw(arguments(6) + "--memory 1MiB");
  EXPECT_NE(too_little.exit_code, 0);
  std::smatch least;
  ASSERT_TRUE(
      std::regex_search(too_little.output, least,
                        std::regex("--memory 1MiB is too little: the least that was found is (\\d+) bytes")))
      << too_little.output;
  const std::vector<double> within = trained("--memory " + least[1].str());
  EXPECT_EQ(within.size(), 6U);
  EXPECT_EQ(within, trained(""));
}

TEST_F(Train, TheReportIsAPageOfOneFile) {
  ASSERT_EQ(run_tw(arguments(4) + "--out run").exit_code, 0);
  ASSERT_EQ(run_tw(arguments(4) + "--out whole --rate 2e-3").exit_code, 0);
  const Outcome table = run_tw("train report run whole");
  EXPECT_EQ(table.exit_code, 0) << table.output;
  EXPECT_TRUE(contains(table.output, "best validation loss")) << table.output;
  ASSERT_EQ(run_tw("train report run whole -o page.html").exit_code, 0);
  const std::string page = read_work_file("page.html");
  for (const char* part :
       {"Loss over steps", "Loss over time", "Gradient norm over steps", "Learning rate over time",
        "<tr class='row differs'><th class='l' scope='row'>learning rate, at most</th>",
        "<tr class='row'><th class='l' scope='row'>seed</th>", "run, training", "mfu: tokens/s"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "src=")) << "all is in it";
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (auto at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<div class='narrow'><svg viewBox='0 0 350 "),
            count("<div class='wide'><svg viewBox='0 0 720 "));
  EXPECT_EQ(count("<svg"), 2 * 8);
  const Outcome json = run_tw("train report run --json");
  EXPECT_EQ(Json::parse(json.output)[0]["reports"].size(), 4U) << json.output;
  const Outcome nothing = run_tw("train report nowhere");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_TRUE(contains(nothing.output, "nowhere is no folder of a training")) << nothing.output;
}

TEST_F(Train, AnotherTextOrSeedIsNoResumption) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  std::ofstream(path("other.txt")) << read_work_file("text.txt") << "the end\n";
  const Outcome text = run_tw("train char --resume run --data other.txt --sample 0");
  EXPECT_NE(text.exit_code, 0);
  EXPECT_TRUE(
      contains(text.output, "other.txt is not the text that this training learnt from: it was changed since"))
      << text.output;
  const Outcome seed = run_tw("train char --resume run --seed 3");
  EXPECT_EQ(seed.exit_code, 2);
  EXPECT_TRUE(contains(seed.output, "excludes")) << seed.output;
}

TEST_F(Train, SettingsThatAreDamagedAreNamedByTheirKey) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  const Json whole = Json::parse(read_work_file("run/training.json"));
  const auto expect = [&](const std::string& settings, const std::string& said) {
    std::ofstream(path("run/training.json")) << settings;
    for (const std::string command : {"train char --resume run", "train report run"}) {
      const Outcome outcome = run_tw(command);
      EXPECT_EQ(outcome.exit_code, 2) << settings;
      EXPECT_TRUE(contains(outcome.output, "run/training.json" + said)) << outcome.output;
    }
  };
  const auto with = [&](const char* key, const Json& value) {
    Json changed = whole;
    changed[key] = value;
    return changed.dump();
  };
  Json less = whole;
  less.erase("recipe");
  expect(less.dump(), " has no \"recipe\": it is not what tw train wrote");
  expect("[1]", " has no \"recipe\"");
  expect("{", ": its JSON ends too early");
  expect(with("steps", -40), ": \"steps\" is -40, and must be a whole number from 1 on");
  expect(with("steps", 1e30), ": \"steps\" is 1e+30, and must be a whole number from 1 on");
  expect(with("rate", 0), ": \"rate\" is 0, and must be a positive number");
  expect(with("small", 1), ": \"small\" is 1, and must be true or false");
  expect(with("data", nullptr), ": \"data\" is null, and must be a text");
  expect(with("ema", 1), ": \"ema\" is 1, and must be a number from 0 to below 1");
}

TEST_F(Train, WhatAKilledProcessLeftIsRemovedWhereItGoesOn) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  for (const char* name : {"run/log.jsonl.12.0.tmp", "run/training.json.12.0.tmp"})
    std::ofstream(path(name)) << "x";
  std::ofstream(path("run/mine.tmp")) << "x";
  EXPECT_EQ(run_tw("train char --resume run --sample 0").exit_code, 0);
  EXPECT_FALSE(fs::exists(path("run/log.jsonl.12.0.tmp")));
  EXPECT_FALSE(fs::exists(path("run/training.json.12.0.tmp")));
  EXPECT_TRUE(fs::exists(path("run/mine.tmp")));
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
  std::ofstream(path("nothing.txt")) << "";
  fs::create_directories(path("full"));
  std::ofstream(path("full/something")) << "x";
  const std::pair<std::string, std::string> cases[] = {
      {"train", "a recipe is wanted"},
      {"train word", "there is no recipe 'word'; known: char"},
      {"train char --data nothing.txt", "--data nothing.txt: the file is empty"},
      {"train char --data text.txt --small --out /dev/null", "--out /dev/null: it is there, and no folder"},
      {"train char --data text.txt --small --accumulate 5", "batches of 12 rows, which that does not divide"},
      {"train char", "--data says what to learn from"},
      {"train char --data none.txt", "none.txt"},
      {"train char --data short.txt --small", "the text has 9 bytes"},
      {"train word --data text.txt", "there is no recipe 'word'"},
      {"train char --data text.txt --small --precision f8", "there is no precision 'f8'"},
      {"train char --data text.txt --small --out full", "--resume full goes on with it"},
      {"train char --resume full", "full is no folder of a training"},
      {"train char --data text.txt --small --moments f16", "--moments f16: they can be f32"},
      {"train char --data text.txt --small --moments bf16,f8", "--moments bf16,f8: they can be f32"},
      {"train char --data text.txt --small --ema 1",
       "a decay of 1; it is a number between 0 and 1, such as 0.999"},
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
