// The commands in the documentation print what the documentation says. With TILEWRIGHT_UPDATE set, the
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

TEST(Docs, RooflineCommandsPrintWhatIsWritten) { expect_true_outputs("roofline.md"); }

}  // namespace
}  // namespace tilewright::tw
