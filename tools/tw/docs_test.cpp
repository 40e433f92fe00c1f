// The commands in the documentation print what the documentation says, or, where that depends on the machine
// ("```console run"), work. Tables and charts stand behind the command that makes them from stored figures:
//   <!-- $ tw bench report … -->
//   what it prints
//   <!-- end -->
// and a command that ends in "> FILE" stands for a file. With TILEWRIGHT_UPDATE set, the outputs in the files
// are rewritten instead; the change is read as a diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

const std::string kRoot = std::string(TW_DOCS) + "/..";

bool updates() { return std::getenv("TILEWRIGHT_UPDATE") != nullptr; }

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void expect_content(const std::string& path, const std::string& said, const std::string& real) {
  if (updates()) {
    std::ofstream(path, std::ios::binary) << real;
  } else {
    EXPECT_EQ(said, real) << "run test_tw with TILEWRIGHT_UPDATE=1 to rewrite " << path;
  }
}

// The output of a command, which finds the repository's lab/; one that ends in "> FILE" fills that file of
// the repository instead.
std::string output_of(const std::string& command) {
  const std::filesystem::path lab = work_folder() + "/lab";
  if (!std::filesystem::exists(lab)) std::filesystem::create_directory_symlink(kRoot + "/lab", lab);
  const auto arrow = command.find(" > ");
  const Outcome outcome = run_tw(command.substr(0, arrow));
  EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.output;
  if (arrow == std::string::npos) return outcome.output;
  const std::string path = kRoot + "/" + command.substr(arrow + 3);
  expect_content(path, read(path), outcome.output);
  return "";
}

// The file with the output below every "$ tw …" line of its console blocks and comments replaced by the real
// one.
std::string with_real_outputs(const std::string& markdown, int& commands) {
  const std::string begin = "<!-- $ tw ", close = " -->", end = "<!-- end -->";
  std::istringstream lines(markdown);
  std::string out, line;
  bool in_console = false, in_output = false;
  while (std::getline(lines, line)) {
    const bool fence = line.rfind("```", 0) == 0;
    const bool made = line.rfind(begin, 0) == 0 && line.ends_with(close);
    const bool command = in_console && line.rfind("$ tw ", 0) == 0;
    if (fence || command || line == end) in_output = false;
    if (!in_output) out += line + "\n";
    if (fence) in_console = !in_console && line == "```console";
    if (!command && !made) continue;
    out += output_of(made ? line.substr(begin.size(), line.size() - begin.size() - close.size())
                          : line.substr(5));
    in_output = true;
    ++commands;
  }
  return out;
}

void expect_true_outputs(const std::string& name) {
  const std::string path = kRoot + "/" + name;
  const std::string said = read(path);
  int commands = 0;
  const std::string real = with_real_outputs(said, commands);
  EXPECT_GT(commands, 0) << path;
  expect_content(path, said, real);
}

// Runs the commands of the blocks that show no output, in the order of the file and with one cache.
void expect_working_commands(const std::string& name) {
  std::istringstream lines(read(std::string(TW_DOCS) + "/" + name));
  bool in_block = false;
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) in_block = !in_block && line == "```console run";
    if (!in_block || line.rfind("$ tw ", 0) != 0) continue;
    const Outcome outcome = run_tw(line.substr(5), "XDG_CACHE_HOME='" + work_folder() + "/docs'");
    EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.output;
    ++commands;
  }
  EXPECT_GT(commands, 0) << name;
}

TEST(Docs, RooflineCommandsPrintWhatIsWritten) { expect_true_outputs("docs/roofline.md"); }
TEST(Docs, FiguresOfTheFrontPageAreTheStoredOnes) { expect_true_outputs("README.md"); }
TEST(Docs, FiguresOfTheBenchmarksAreTheStoredOnes) { expect_true_outputs("docs/benchmarks.md"); }
TEST(Docs, EveryOtherCommandWorks) { expect_working_commands("commands.md"); }

}  // namespace
}  // namespace tilewright::tw
