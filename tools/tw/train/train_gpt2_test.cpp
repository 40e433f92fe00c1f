// tw train gpt2 as a user meets it: from text to shards to a model, resumption to the bit, data of the wrong
// kind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kSmallTokenizer = std::string(TW_DOCS) + "/../lab/data/tokenizer.json";

class TrainGpt2 : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"run", "whole", "tokens", "short", "bad"}) fs::remove_all(path(folder));
    std::ofstream text(path("fox.txt"));
    for (int i = 0; i < 600; ++i) text << "the quick brown fox " << i << " jumps over the lazy dog\n";
    text.close();
    tokenize("fox.txt", "tokens", "--validation 0.1");
  }
  static std::string path(const std::string& name) { return work_folder() + "/" + name; }
  static void tokenize(const std::string& text, const std::string& out, const std::string& more = "") {
    const Outcome outcome = run_tw(
        fmt::format("tokenize {} --tokenizer '{}' --out {} --quiet {}", text, kSmallTokenizer, out, more));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  static std::string arguments(int steps) {
    return fmt::format("train gpt2 --data tokens --small --steps {} --quiet ", steps);
  }
  static std::vector<Json> reports(const std::string& arguments) {
    const Outcome outcome = run_tw(arguments + "--json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    std::istringstream lines(outcome.output);
    std::vector<Json> found;
    for (std::string line; outcome.exit_code == 0 && std::getline(lines, line);)
      found.push_back(Json::parse(line));
    return found;
  }
  static void expect_mistake(const std::string& arguments, std::initializer_list<const char*> parts) {
    const Outcome outcome = run_tw(arguments + " --quiet");
    EXPECT_NE(outcome.exit_code, 0) << arguments;
    for (const char* part : parts)
      EXPECT_TRUE(contains(outcome.output, part)) << part << " is not in\n" << outcome.output;
  }
};

TEST_F(TrainGpt2, LearnsFromTheShardsThatTokenizeMakes) {
  const std::vector<Json> found = reports(arguments(16));
  ASSERT_EQ(found.size(), 8U);
  EXPECT_LT(found.back()["val_loss"].get<double>(), found.front()["val_loss"].get<double>() - 0.1);
  EXPECT_LT(found.front()["val_loss"].get<double>(), 8) << "near the logarithm of 1024 at first";
  EXPECT_GE(found.back()["loader_wait"].get<double>(), 0);
  EXPECT_LE(found.back()["loader_wait"].get<double>(), 1);
  const Outcome outcome = run_tw(arguments(2));
  EXPECT_FALSE(contains(outcome.output, "\n\n")) << "no text is written: " << outcome.output;
}

TEST_F(TrainGpt2, AnInterruptedTrainingGoesOnToTheSameBits) {
  ASSERT_EQ(run_tw(arguments(8) + "--out whole").exit_code, 0);
  // Interrupted when the first report is there, which is a minute's wait at most.
  const Outcome cut =
      run_tw(arguments(8) +
                 "--out run & pid=$!; for i in $(seq 1200); do [ -e run/log.jsonl ] && break; "
                 "sleep 0.05; done; kill -TERM $pid; wait $pid )",
             "(");
  ASSERT_EQ(cut.exit_code, 130) << cut.output;
  ASSERT_FALSE(fs::exists(path("run/step-00000008.safetensors"))) << "it ended before the signal came";
  const Outcome rest = run_tw("train gpt2 --resume run --quiet");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_TRUE(read_work_file("run/step-00000008.safetensors") ==
              read_work_file("whole/step-00000008.safetensors"));
}

TEST_F(TrainGpt2, PartsOfABatchAreTheSameTraining) {
  const std::vector<Json> whole = reports(arguments(8)), parts = reports(arguments(8) + "--accumulate 4 ");
  ASSERT_EQ(whole.size(), 8U);
  ASSERT_EQ(parts.size(), 8U);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const char* loss : {"train_loss", "val_loss"})
      EXPECT_NEAR(parts[i][loss].get<double>(), whole[i][loss].get<double>(), 1e-4) << loss;
}

TEST_F(TrainGpt2, OtherShardsAreNoResumption) {
  ASSERT_EQ(run_tw(arguments(2) + "--out run").exit_code, 0);
  tokenize("fox.txt", "short", "--validation 0.2");
  expect_mistake("train gpt2 --resume run --data short",
                 {"short is not the folder of tokens that this training learnt from: it was changed since"});
}

TEST_F(TrainGpt2, DataOfTheWrongKindSaysWhatToDo) {
  expect_mistake("train gpt2 --data fox.txt --small",
                 {"--data fox.txt is a file", "recipe 'gpt2, small' learns from a folder of token shards",
                  "`tw tokenize fox.txt --tokenizer FILE --out FOLDER` makes one"});
  expect_mistake("train gpt2 --data nowhere --small", {"--data nowhere: there is no such folder"});
  expect_mistake("train gpt2 --data tokens/train --small",
                 {"it has no folder train/", "`tw tokenize TEXT --tokenizer FILE --out FOLDER` makes one"});
  expect_mistake(
      "train char --data tokens --small",
      {"--data tokens is a folder", "recipe 'char, small' learns the bytes of a text", "tw train gpt2"});
  expect_mistake("train char --data tokens/train/00000.tokens --small",
                 {"--data tokens/train/00000.tokens is a token shard", "tw train gpt2"});
  tokenize("fox.txt", "bad", "--validation 0");
  expect_mistake("train gpt2 --data bad --small", {"it has no folder validation/", "--validation is 0"});
}

TEST_F(TrainGpt2, ShardsShorterThanARowAreRefused) {
  std::ofstream(path("few.txt")) << "the quick brown fox jumps over the lazy dog, and does so again";
  tokenize("few.txt", "short", "--validation 0.5");
  expect_mistake(
      "train gpt2 --data short --small",
      {"short/train has ", " tokens, and a row of recipe 'gpt2, small' is 129 with the one that follows",
       "tokenize more text"});
}

TEST_F(TrainGpt2, ATokenPastTheVocabularyIsNamedWithItsPlace) {
  fs::copy(path("tokens"), path("bad"), fs::copy_options::recursive);
  const std::string file = "bad/train/00000.tokens";
  std::string bytes = read_work_file(file);
  for (std::size_t at = 64; at + 1 < bytes.size(); at += 2) {  // each token of two bytes becomes 1024
    bytes[at] = 0;
    bytes[at + 1] = 4;
  }
  std::ofstream(path(file), std::ios::binary) << bytes;
  expect_mistake("train gpt2 --data bad --small",
                 {"00000.tokens: token ", " is 1024, past the vocabulary of 1024", "another tokenizer"});
}

TEST_F(TrainGpt2, AVocabularyPastTheModelsIsRefused) {
  // A tokenizer of more tokens than GPT-2's, by a special one with a high number.
  const Outcome outcome =
      run_tw(fmt::format("tokenize fox.txt --tokenizer '{}' --out bad --quiet --validation 0.1 "
                         "--end-of-text '<|end|>=60000'",
                         kSmallTokenizer));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_mistake(
      "train gpt2 --data bad --small",
      {"a vocabulary of 60001 tokens, past the 50257 of recipe 'gpt2, small'", "tokenizer of GPT-2"});
}

}  // namespace
}  // namespace tilewright::tw
