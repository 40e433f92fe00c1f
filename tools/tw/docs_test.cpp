// The commands in the documentation print what the documentation says, or, where that depends on the machine
// ("```console run"), work. With TILEWRIGHT_UPDATE set, the
// outputs in the files are rewritten instead; the change is read as a diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tw/run_command.h"

namespace tilewright::tw {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The file with the output below every "$ tw …" line of its console blocks replaced by the real one.
std::string with_real_outputs(const std::string& markdown, int& commands) {
  std::istringstream lines(markdown);
  std::string out, line;
  bool in_console = false, in_output = false;
  while (std::getline(lines, line)) {
    const bool fence = line.rfind("```", 0) == 0;
    const bool command = in_console && line.rfind("$ tw ", 0) == 0;
    if (fence || command) in_output = false;
    if (!in_output) out += line + "\n";
    if (fence) in_console = !in_console && line == "```console";
    if (command) {
      out += run_tw(line.substr(5)).output;
      in_output = true;
      ++commands;
    }
  }
  return out;
}

void expect_true_outputs(const std::string& name) {
  const std::string path = std::string(TW_DOCS) + "/" + name;
  const std::string said = read(path);
  int commands = 0;
  const std::string real = with_real_outputs(said, commands);
  EXPECT_GT(commands, 0) << path;
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) {
    std::ofstream(path, std::ios::binary) << real;
  } else {
    EXPECT_EQ(said, real) << "run test_tw with TILEWRIGHT_UPDATE=1 to rewrite " << path;
  }
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

TEST(Docs, RooflineCommandsPrintWhatIsWritten) { expect_true_outputs("roofline.md"); }
TEST(Docs, EveryOtherCommandWorks) { expect_working_commands("commands.md"); }

}  // namespace
}  // namespace tilewright::tw
