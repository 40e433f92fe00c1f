// Running tw, and what it says when it is asked for wrongly.
#include "tw/command/run_command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace tilewright::tw {

std::string work_folder() {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("tw_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return folder.string();
}

namespace {

Outcome run(const std::string& in_folder) {
  const std::string command = "cd '" + work_folder() + "' && " + in_folder + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  Outcome outcome;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.output.append(buffer, got);
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace

std::string read_work_file(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(work_folder() + "/" + name).rdbuf();
  return text.str();
}

Outcome run_tw(const std::string& arguments, const std::string& prefix) {
  return run(prefix + " '" TW_COMMAND "' " + arguments);
}

Outcome run_tw_on_terminal(const std::string& arguments, const std::string& prefix) {
  return run(prefix + " script -qec \"'" TW_COMMAND "' " + arguments + "\" /dev/null < /dev/null");
}

namespace {

class RemoveWorkFolder : public testing::Environment {
  void TearDown() override { std::filesystem::remove_all(work_folder()); }
};
[[maybe_unused]] const auto* const kCleanup = testing::AddGlobalTestEnvironment(new RemoveWorkFolder);

void expect_usage_error(const std::string& arguments, const std::string& said) {
  const Outcome outcome = run_tw(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << arguments;
  EXPECT_NE(outcome.output.find(said), std::string::npos) << arguments << "\n" << outcome.output;
}

TEST(Command, HelpListsTheSubcommands) {
  const Outcome outcome = run_tw("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("roofline"), std::string::npos);
}

TEST(Command, OutputThatCannotBeWrittenIsAFailure) {
  // More than a stream holds back, and less.
  for (const std::string command : {"--help-all", "bench list", "--help", "roofline table h200"})
    for (const auto& [to, why] :
         {std::pair{"/dev/full", "No space left on device"}, std::pair{"&-", "Bad file descriptor"}}) {
      const Outcome outcome = run_tw("2>&1 " + command + " >" + to + "; echo \"exit $?\"");
      EXPECT_EQ(outcome.output, std::string("tw: cannot write the output: ") + why + "\nexit 1\n")
          << command << to;
    }
  EXPECT_EQ(run_tw("2>&1 rooflin > /dev/full; exit $?").exit_code, 2);
}

TEST(Command, AReaderThatGoesAwayIsNoFailure) {
  for (const std::string command : {"--help-all", "bench list", "--help"})
    for (const std::string prefix : {"", "trap '' PIPE;"})
      EXPECT_EQ(run_tw(command + " 2>said | true; cat said", prefix).output, "") << prefix << command;
}

TEST(Command, UnknownSubcommandIsNamedWithTheKnown) {
  expect_usage_error("rooflin", "unknown subcommand 'rooflin'; known: ");
  expect_usage_error("roofline mm", "unknown subcommand 'mm'; known: matmul, dot");
  expect_usage_error("", "subcommand is required");
  expect_usage_error("explain", "'what' is missing: A pair of `tw bench list`");
  expect_usage_error("explain --wrong", "unknown option '--wrong'");
  expect_usage_error("devices --output ''", "this one is empty");
}

TEST(Command, AnUnknownOptionIsSaidInTheSameWordsByAllCommands) {
  for (const std::string command : {"", "bench run", "explain", "explain softmax", "bench run --nope=3 elu",
                                    "devices", "tokenize", "roofline matmul", "train --nope 3 run"})
    expect_usage_error(command + " --nope", "tw: unknown option '--nope'\n");
  expect_usage_error("devices more", "tw: one argument too many: 'more'\n");
}

TEST(Command, UsageErrorsSayWhatAndWhatToDo) {
  const std::string matmul = "roofline matmul --b 1 --d 64 --f 64 --hw ";
  expect_usage_error(matmul + "h1", "unknown hardware 'h1'; known: h100, h200");
  expect_usage_error("roofline matmul --hw h100", "--b is required");
  expect_usage_error("roofline matmul --hw h100 --b 0 --d 1 --f 1", "--b: '0' is not a positive number");
  expect_usage_error(matmul + "h100 --math f99", "unknown element type 'f99'; known: f64, f32");
  expect_usage_error(matmul + "h100 --sweep q=1:2", "matmul has no extent 'q' to set; it has b, d, f");
  expect_usage_error(matmul + "h100 --sweep b=2:1", "ends before it begins");
  expect_usage_error(matmul + "h100 --sweep b=1:x", "'x' is not a positive whole number");
  expect_usage_error(matmul + "h100 --sweep b=1:9:x1", "the factor must be at least 2");
  expect_usage_error(matmul + "h100 --also d=3", "--also requires --sweep");
  expect_usage_error(matmul + "h100 --plot x.pdf", "must end in .svg or .png");
  expect_usage_error(matmul + "./none.json", "cannot read ./none.json: No such file or directory");
  expect_usage_error("roofline tiled --hw h100 --bm 8 --bn 8 --m 4", "--m requires --n");
  expect_usage_error("roofline attention --hw tpu-v6e --n 128", "give it with --on-chip");
}

TEST(Command, NumbersOutOfRangeAreNamedWithoutTheLimitsOfAType) {
  expect_usage_error("bench sweep --count 0", "--count: '0' is not at least 1\n");
  expect_usage_error("roofline work --hw h100 --flops -1 --bytes 1",
                     "--flops: '-1' is not a number from 0 on\n");
  expect_usage_error("roofline work --hw h100 --flops 1 --bytes inf",
                     "--bytes: 'inf' is not a number from 0 on\n");
  expect_usage_error("devices --seconds 0", "--seconds: '0' is not a positive number\n");
  expect_usage_error("bench run elu --budget many", "--budget: 'many' is not a number from 0 on\n");
  expect_usage_error("kernel run x.cpp --budget 0", "--budget: '0' is not a positive number\n");
  expect_usage_error("devices --threads -2", "tw: -2 threads: give 1 to 4096");
}

TEST(Command, NoNumberIsTakenForAnother) {
  const std::string matmul = "roofline matmul --hw h100 --d 3 --f 2 --b ";
  expect_usage_error(matmul + "99999999999999999999",
                     "--b: '99999999999999999999' is beyond what 64 bits hold\n");
  expect_usage_error(matmul + "2.5", "--b: '2.5' is not a whole number\n");
  expect_usage_error(matmul + "nan", "--b: 'nan' is not a positive number\n");
  expect_usage_error("train char --steps 99999999999999999999", "is beyond what 64 bits hold\n");
  expect_usage_error("train char --seed 99999999999999999999", "is beyond what 64 bits hold\n");
  for (const std::string option : {"--steps", "--accumulate", "--rate"}) {
    expect_usage_error("train char " + option + " 0", option + ": '0' is not a positive number\n");
    expect_usage_error("train char " + option + " nan", option + ": 'nan' is not a positive number\n");
    expect_usage_error("train char " + option + " inf", option + ": 'inf' is not a positive number\n");
  }
  expect_usage_error("tokenize x.txt --tokenizer y --out z --validation nan",
                     "--validation: 'nan' is not a number from 0 to 1\n");
  expect_usage_error("tokenize x.txt --tokenizer y --out z --shard-tokens 1",
                     "--shard-tokens: '1' is not at least 1000\n");
}

TEST(Command, SizesCountByThousandsAndBy1024) {
  const std::string sweep = "bench sweep --count 1 --list --max-bytes ";
  for (const std::string size : {"40MB", "1GB", "0.5TB", "64kB", "64MiB", "'2 GiB'", "1TiB", "4096"})
    EXPECT_EQ(run_tw(sweep + size).exit_code, 0) << size;
  const auto programs = [&](const std::string& size) {
    const std::string all = run_tw(sweep + size).output;
    return all.substr(all.find('\n'));  // the first line says the size as it was given
  };
  EXPECT_EQ(programs("1024kB"), programs("1024000"));
  EXPECT_EQ(programs("1MiB"), programs("1048576"));
  for (const std::string size : {"nan", "inf", "0", "4apples", "MB"})
    expect_usage_error(sweep + size,
                       "is no size: a size is 64MiB, 2GiB (of 1024), 40MB, 2GB (of 1000) or bytes");
  expect_usage_error(sweep + "1e30GiB", "'1e30GiB' is beyond what 63 bits hold");
  expect_usage_error(sweep + "-4MB", "'-4MB' is negative");
}

TEST(Command, HelpIsASubcommandToo) {
  EXPECT_EQ(run_tw("help").output, run_tw("--help").output);
  EXPECT_EQ(run_tw("help bench run").output, run_tw("bench run --help").output);
  expect_usage_error("help bench runn", "tw bench has no subcommand 'runn'; known: list, run");
  expect_usage_error("help man page", "tw man has no subcommands, and no 'page'");
}

TEST(Command, FilesThatCannotBeReadAreNamedWithTheReason) {
  expect_usage_error("explain nosuch.tw", "cannot read nosuch.tw: No such file or directory");
  expect_usage_error("explain /", "cannot read /: Is a directory");
  expect_usage_error("train char --data nosuch", "cannot read nosuch: No such file or directory");
}

TEST(Command, FilesThatAreNoJsonAreNamedInPlainWords) {
  const auto file = [](const char* name, const char* text) {
    std::ofstream(work_folder() + "/" + name) << text;
  };
  file("comment.json", "# a run\n");
  file("cut.json", "[{\"target\": 1");
  file("nothing.json", "");
  for (const std::string command : {"bench report ./", "roofline dot --n 8 --hw ./"}) {
    expect_usage_error(command + "comment.json", ": it is no JSON from line 1, column 1 on\n");
    expect_usage_error(command + "cut.json", ": its JSON ends too early, at line 1, column 14\n");
    expect_usage_error(command + "nothing.json", ": it is empty\n");
  }
  expect_usage_error("bench report .", "cannot read .");
}

TEST(Command, HereWithoutMeasurementsSaysSo) {
  const Outcome outcome =
      run_tw("roofline dot --n 8 --hw here", "XDG_CACHE_HOME=" + work_folder() + "/empty");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("was not measured on this machine: run `tw devices --probe`"),
            std::string::npos)
      << outcome.output;
}

TEST(Command, WhatCannotBeDoneExitsWithOne) {
  const std::string plot = "roofline dot --hw h100 --n 8 --plot ";
  // A file stands where the folder of the plot would have to be.
  const std::string file = work_folder() + "/no_folder";
  std::ofstream(file) << "a file\n";
  EXPECT_EQ(run_tw(plot + file + "/x.svg").exit_code, 1);
  const Outcome without = run_tw(plot + "x.svg", "PATH=/nonexistent");
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.output.find("--plot needs gnuplot"), std::string::npos) << without.output;
}

// 2: the line itself is wrong, on every machine. 1: the line is right, and this machine or folder is not.
TEST(Command, ExitCodesTellWhatIsWrongFromWhatCannotBe) {
  const std::string file = work_folder() + "/a_file", text = work_folder() + "/text.txt";
  std::ofstream(file) << "a file\n";
  std::ofstream out(text);
  for (int i = 0; i < 3000; ++i) out << "some words to learn from\n";
  out.close();
  const std::string train = "train char --small --steps 1 --data " + text;
  const std::map<std::string, int> codes = {{"explain elu --no-time --dump " + file + "/stages", 1},
                                            {"explain elu --no-time --output " + file + "/x", 1},
                                            {"bench run elu --budget 0.1 --output " + file + "/x", 1},
                                            {"kernel edit elu -o " + file + "/x.cpp", 1},
                                            {train + " --out " + file + "/run", 1},
                                            {train + " --out " + file, 2},  // it is there, and something else
                                            {"explain elu --no-time --dump", 2},
                                            {"explain nosuch", 2},
                                            {"explain elu --set nosuch=1", 2},
                                            {"devices --device gpu", 2},
                                            {"explain elu --device gpu", 2},
                                            {"roofline dot --n 8 --hw " + work_folder() + "/nosuch.json", 2},
                                            {"bench report " + work_folder() + "/nosuch.json", 2}};
  for (const auto& [line, code] : codes) EXPECT_EQ(run_tw(line).exit_code, code) << line;
}

// The message is the driver's, and there is none where a GPU is.
TEST(Command, ADeviceThatIsNotThereCannotBeHad) {
  for (const std::string line :
       {"devices", "explain elu", "kernel list elu", "bench run elu --budget 0.1", "train bytes"}) {
    const Outcome outcome = run_tw(line + " --device cuda:63");
    EXPECT_EQ(outcome.exit_code, 1) << line << "\n" << outcome.output;
  }
}

}  // namespace
}  // namespace tilewright::tw
