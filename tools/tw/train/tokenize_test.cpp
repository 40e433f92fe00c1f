// tw tokenize as a user meets it: shards of texts, folders and lines, what is held out, mistakes,
// interruption.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kTokenizer = std::string(TW_DOCS) + "/../lab/data/tokenizer.json";

struct Tokenize : testing::Test {
  Tokenize() {
    fs::remove_all(path("texts"));
    fs::remove_all(path("out"));
    fs::create_directories(path("texts/deeper"));
  }
  static std::string path(const std::string& name) { return work_folder() + "/" + name; }
  static void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  static Outcome tokenize(const std::string& arguments) {
    return run_tw(fmt::format("tokenize --tokenizer '{}' {}", kTokenizer, arguments));
  }
  static void expect_mistake(const std::string& arguments, const std::string& said) {
    const Outcome outcome = tokenize(arguments);
    EXPECT_NE(outcome.exit_code, 0) << arguments;
    EXPECT_TRUE(contains(outcome.output, said)) << outcome.output << "\n  lacks " << said;
  }
  // The tokens of a shard of two bytes each.
  static std::vector<std::uint16_t> tokens(const std::string& name) {
    const std::string file = read_work_file(name);
    std::vector<std::uint16_t> out((file.size() - 64) / 2);
    std::memcpy(out.data(), file.data() + 64, file.size() - 64);
    return out;
  }
};

TEST_F(Tokenize, WritesTextsAndLinesInTheOrderOfTheirPaths) {
  write("texts/b.txt", "B");
  write("texts/deeper/a.jsonl", "{\"text\": \"C\"}\r\n\n{\"id\": 3, \"text\": \"D\\u0021\"}");
  write("texts/a.txt", "A");
  write("texts/no.md", "not this");
  const Outcome outcome = tokenize("texts texts/b.txt --out out/x --validation 0 --quiet");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "11 tokens of 5 documents")) << outcome.output;
  // GPT-2's letters: "!" is token 1, behind the end of text.
  const auto letter = [](char c) { return static_cast<std::uint16_t>(c - '!' + 1); };
  EXPECT_EQ(tokens("out/x/train/00000.tokens"),
            (std::vector<std::uint16_t>{letter('A'), 0, letter('B'), 0, letter('C'), 0, letter('D'),
                                        letter('!'), 0, letter('B'), 0}));
  EXPECT_FALSE(fs::exists(path("out/x/validation")));
  EXPECT_EQ(std::distance(fs::directory_iterator(path("out")), {}), 1);
}

TEST_F(Tokenize, HoldsOutAsManyDocumentsAsWereAskedForWhateverTheThreads) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += fmt::format("{{\"body\": \"{}\"}}\n", i);
  write("texts/lines.jsonl", lines);
  const std::string arguments = "texts/lines.jsonl --field body --validation 0.02 --shard-tokens 2500 ";
  const Outcome outcome = tokenize(arguments + "--out out/a --json --threads 3 --quiet");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Json said = Json::parse(outcome.output);
  EXPECT_EQ(said["validation"]["documents"], 20);
  EXPECT_EQ(said["train"]["documents"], 980);
  EXPECT_EQ(said["vocabulary"], 1024);
  EXPECT_EQ(said["tokens"], said["train"]["tokens"].get<int>() + said["validation"]["tokens"].get<int>());
  EXPECT_EQ(tokens("out/a/train/00000.tokens").size() + tokens("out/a/train/00001.tokens").size(),
            said["train"]["tokens"].get<std::size_t>());
  EXPECT_EQ(tokens("out/a/train/00000.tokens").size(), 2500U);
  ASSERT_EQ(tokenize(arguments + "--out out/b --threads 1 --quiet").exit_code, 0);
  ASSERT_EQ(tokenize(arguments + "--out out/c --seed 1 --quiet").exit_code, 0);
  const std::string shard = "validation/00000.tokens";
  EXPECT_EQ(read_work_file("out/a/" + shard), read_work_file("out/b/" + shard));
  EXPECT_NE(read_work_file("out/a/" + shard), read_work_file("out/c/" + shard));
}

TEST_F(Tokenize, HoldsOutTheEndOfASingleDocument) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('A' + i % 7);
  write("texts/one.txt", text);
  write("texts/one.jsonl", Json{{"text", text}}.dump());
  ASSERT_EQ(tokenize("texts/one.txt --out out/whole --validation 0 --quiet").exit_code, 0);
  std::vector<std::uint16_t> whole = tokens("out/whole/train/00000.tokens");
  ASSERT_GT(whole.size(), 200U);
  for (const auto& [file, option, part] :
       {std::tuple{"texts/one.txt", "", 0.005}, std::tuple{"texts/one.jsonl", " --validation 0.25", 0.25}}) {
    const Outcome outcome = tokenize(fmt::format("{} --out out/of_{}{} --quiet", file, part, option));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "tokens of 1 document\nvalidation")) << outcome.output;
    std::vector<std::uint16_t> train = tokens(fmt::format("out/of_{}/train/00000.tokens", part));
    const std::vector<std::uint16_t> validation =
        tokens(fmt::format("out/of_{}/validation/00000.tokens", part));
    const auto end = static_cast<double>(whole.size() - 1);  // behind each part stands the end of text
    EXPECT_EQ(validation.size(), static_cast<std::size_t>(std::llround(part * end)) + 1) << file;
    EXPECT_EQ(train.back(), whole.back());
    train.pop_back();
    train.insert(train.end(), validation.begin(), validation.end());
    EXPECT_EQ(train, whole) << file;
  }
  write("texts/short.txt", "a");
  expect_mistake("texts/short.txt --out out/short", "1 of 1 tokens would validate");
}

TEST_F(Tokenize, ReadsTiktokenFilesWithAnEndOfTextOfTheirOwn) {
  write("texts/a.txt", "ab");
  write("texts/small.tiktoken", "YQ== 0\nYg== 1\n");
  const std::string arguments =
      "tokenize texts/a.txt --tokenizer texts/small.tiktoken --validation 0 --out out/t --quiet --pattern "
      "gpt2 ";
  const Outcome without = run_tw(arguments);
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_TRUE(contains(without.output, "--end-of-text '<|endoftext|>=2' adds one")) << without.output;
  const Outcome outcome = run_tw(arguments + "--end-of-text '<|endoftext|>=2'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(tokens("out/t/train/00000.tokens"), (std::vector<std::uint16_t>{0, 1, 2}));
}

TEST_F(Tokenize, MistakesSayWhatToDoAndLeaveNothing) {
  write("texts/a.txt", "a");
  write("texts/bad.jsonl", "{\"text\": \"a\"}\n{\"id\": 1}\n");
  write("texts/worse.jsonl", "\n{\"text\": 3}\n");
  write("texts/broken.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
  write("texts/other.md", "a");
  fs::create_directories(path("texts/empty"));
  const std::string rest = " --validation 0 --out out";
  expect_mistake("texts/bad.jsonl" + rest,
                 "texts/bad.jsonl line 2: it has no field \"text\" (--field); it has: id");
  expect_mistake("texts/worse.jsonl" + rest,
                 "texts/worse.jsonl line 2: its field \"text\" is no text: number");
  expect_mistake("texts/broken.jsonl" + rest,
                 "texts/broken.jsonl line 2: it cannot be read: its JSON ends too early");
  expect_mistake("texts/other.md" + rest, "a .txt file, a .jsonl file or a folder of them is wanted");
  expect_mistake("texts/empty" + rest, "has no .txt and no .jsonl file");
  expect_mistake("nowhere.txt" + rest, "nowhere.txt: it cannot be opened");
  expect_mistake("texts/a.txt --out out", "--validation 0 holds none out");
  expect_mistake("texts/a.txt --out out --validation 2", "--validation");
  expect_mistake("texts/a.txt --end-of-text '<end>'" + rest, "--end-of-text '<end>=NUMBER' adds it");
  expect_mistake("texts/a.txt --pattern gpt2" + rest, "leave `pattern` empty");
  EXPECT_EQ(run_tw("tokenize texts/a.txt --tokenizer nowhere" + rest).exit_code, 2);
  EXPECT_FALSE(fs::exists(path("out")));
  for (const auto& entry : fs::directory_iterator(work_folder()))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  ASSERT_EQ(tokenize("texts/a.txt --quiet" + rest).exit_code, 0);
  expect_mistake("texts/a.txt" + rest, "--out out: it is there, and no empty folder");
}

TEST_F(Tokenize, AnInterruptedRunStoresNothing) {
  std::string line = "{\"text\": \"";
  for (int i = 0; i < 2000; ++i) line += std::to_string(i * 7919) + (i % 3 == 0 ? "word " : " ");
  std::ofstream file(path("texts/long.jsonl"));
  for (int i = 0; i < 3000; ++i) file << line << "\"}\n";  // 60 MB, seconds of work
  file.close();
  const Outcome cut = run_tw(
      fmt::format(
          "tokenize texts/long.jsonl --tokenizer '{}' --threads 1 --out out/i & pid=$!; for i in $(seq "
          "1200); do ls out/i.*.tmp/train >/dev/null 2>&1 && break; sleep 0.02; done; "
          "kill -TERM $pid; wait $pid )",
          kTokenizer),
      "(");
  EXPECT_EQ(cut.exit_code, 130) << cut.output;
  EXPECT_TRUE(contains(cut.output, "interrupted; nothing was stored")) << cut.output;
  EXPECT_TRUE(fs::is_empty(path("out")));
}

}  // namespace
}  // namespace tilewright::tw
