// tw completion and tw man: all that --help says is in them, and the programs that read them do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Names = std::set<std::string>;

// What --help prints of a subcommand, read back from its text.
struct Help {
  Names options, subcommands;
};

Help help_of(const std::string& path) {
  Help help;
  std::istringstream lines(run_tw(path + " --help").output);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') section = line;
    if (line.rfind("  ", 0) != 0 || line.size() < 3 || line[2] == ' ' || section == "Positionals:") continue;
    const std::string name =
        line.substr(2, line.find(' ', 2) - 2);  // "-o,--output", "--time,--no-time{false}"
    if (name[0] != '-') {
      if (section.rfind("Exit codes:", 0) != 0) help.subcommands.insert(name);
      continue;
    }
    static const std::regex one("--?[a-z][a-z-]*");
    for (std::sregex_iterator at(name.begin(), name.end(), one), end; at != end; ++at)
      help.options.insert(at->str());
  }
  return help;
}

// What --help says, for each subcommand by its path, "bench run"; "" is tw.
const std::map<std::string, Help>& all_help() {
  static const auto* const all = [] {
    auto* found = new std::map<std::string, Help>;
    std::vector<std::string> left = {""};
    while (!left.empty()) {
      const std::string path = left.back();
      left.pop_back();
      const Help& help = (*found)[path] = help_of(path);
      for (const std::string& sub : help.subcommands)
        left.push_back(path.empty() ? sub : fmt::format("{} {}", path, sub));
    }
    return found;
  }();
  return *all;
}

bool has(const std::string& program) {
  return run_tw("--version >/dev/null; command -v " + program + " >/dev/null").exit_code == 0;
}

// Lines that bash's own completion offers for each of the command lines, asked as readline asks.
std::map<std::string, Names> completed(const std::vector<std::string>& lines) {
  std::ofstream script(work_folder() + "/ask.bash");
  script << "source ./tw.bash\n"
            "while IFS= read -r COMP_LINE; do\n"
            "  COMP_POINT=${#COMP_LINE} COMPREPLY=()\n"
            "  _tw\n"
            "  echo \"$COMP_LINE|${COMPREPLY[*]}\"\n"
            "done\n";
  script.close();
  std::ofstream asked(work_folder() + "/asked");
  for (const std::string& line : lines) asked << line << "\n";
  asked.close();
  std::map<std::string, Names> all;
  std::istringstream answers(run_tw("completion bash -o tw.bash && bash ask.bash < asked").output);
  for (std::string line; std::getline(answers, line);) {
    std::istringstream words(line.substr(line.find('|') + 1));
    Names& names = all[line.substr(0, line.find('|'))];
    for (std::string word; words >> word;) names.insert(word);
  }
  return all;
}

TEST(Help, IsReadBackByThisTest) {
  EXPECT_GT(all_help().size(), 50u);
  EXPECT_TRUE(all_help().at("bench").subcommands.contains("sweep"));
  EXPECT_TRUE(all_help().at("roofline").subcommands.contains("softmax"));
  for (const char* name : {"-o", "--output", "--update-expectations"})
    EXPECT_TRUE(all_help().at("bench run").options.contains(name)) << name;
  EXPECT_TRUE(all_help().at("explain").options.contains("--no-time"));
}

TEST(Help, OfAllIsThatOfEverySubcommand) {
  const std::string all = run_tw("--help-all").output, of_bench = run_tw("bench --help-all").output;
  for (const auto& [path, help] : all_help()) {
    const std::string usage = "Usage: tw " + path + (path.empty() ? "[OPTIONS]" : " [OPTIONS]");
    EXPECT_TRUE(contains(all, usage)) << usage;
    EXPECT_EQ(contains(of_bench, usage), path.starts_with("bench")) << usage;
    for (const std::string& option : help.options)
      EXPECT_TRUE(contains(all, option)) << path << " " << option;
  }
}

TEST(Completion, OfBashOffersWhatHelpSaysOfEverySubcommand) {
  std::vector<std::string> lines;
  for (const auto& [path, help] : all_help())
    for (const char* last : {"-", ""}) lines.push_back("tw " + path + (path.empty() ? "" : " ") + last);
  const auto offered = completed(lines);
  for (const auto& [path, help] : all_help()) {
    const std::string line = "tw " + path + (path.empty() ? "" : " ");
    EXPECT_EQ(offered.at(line + "-"), help.options) << line;
    if (!help.subcommands.empty()) {
      for (const std::string& sub : help.subcommands)
        EXPECT_TRUE(offered.at(line).contains(sub)) << line << sub;
    }
  }
}

TEST(Completion, OfBashKnowsValuesAndWhereTheLineIs) {
  const std::vector<std::pair<std::string, Names>> expected = {
      {"tw be", {"bench"}},
      {"tw bench re", {"report"}},
      {"tw bench run --ceilings ", {"auto", "measure", "none"}},
      {"tw bench run --ceilings=m", {"measure"}},
      {"tw bench run softm", {"softmax"}},
      {"tw bench run qui", {"quick"}},
      {"tw bench run quick --device cuda:", {"0"}},  // readline keeps what stands before the colon
      {"tw explain --stage s", {"source"}},
      {"tw explain softmax --time bench --st", {"--stage"}},
      {"tw explain gemm_fp8 --set dtype=", {"f8e4m3", "f8e5m2"}},
      {"tw bench run --device cpu gemm_fp8 --set sca", {"scaling=tensor", "scaling=row", "scaling=block"}},
      {"tw explain nosuch.tw --set ", {}},
      {"tw completion ", {"bash", "fish", "zsh"}},
      {"tw train ", {"bytes", "char", "gpt2", "report"}},
      {"tw train char --precision ", {"bf16", "f16", "f32", "fp8", "fp8-block", "tf32"}},
      {"tw train char --moments ", {"bf16", "f32", "f8e4m3"}},
      {"tw bench sweep --family embed", {"embedding", "embedding_gradient"}},
      {"tw bench report --output ", {}},  // files, by readline
      {"tw bench run --output bench", {}},
      {"tw roofline table h2", {"h200"}},
      {"tw roofline dot --hw h1", {"h100"}}};
  std::vector<std::string> lines;
  lines.reserve(expected.size());
  for (const auto& [line, words] : expected) lines.push_back(line);
  const auto offered = completed(lines);
  for (const auto& [line, words] : expected) EXPECT_EQ(offered.at(line), words) << line;
}

TEST(Completion, IsReadByItsShell) {
  std::string missing;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    ASSERT_EQ(run_tw(fmt::format("completion {0} -o script.{0}", shell)).output, "");
    const std::string text = read_work_file("script." + shell);
    for (const auto& [path, help] : all_help())
      for (const std::string& option : help.options) {
        const bool is_long = option.rfind("--", 0) == 0;
        const std::string in_fish = is_long ? " -l " + option.substr(2) : " -s " + option.substr(1);
        EXPECT_TRUE(contains(text, shell == "fish" ? in_fish : option)) << shell << " " << path << option;
      }
    if (!has(shell)) {
      missing += " " + shell;
      continue;
    }
    EXPECT_EQ(run_tw(fmt::format("--version >/dev/null; {0} -n script.{0}", shell)).output, "") << shell;
  }
  const Outcome registered = run_tw("--version >/dev/null; bash -c 'source ./script.bash; complete -p tw'");
  EXPECT_EQ(registered.output, "complete -o default -F _tw tw\n");
  if (has("fish")) {
    const Outcome asked =
        run_tw("--version >/dev/null; fish -c 'source ./script.fish; complete -C \"tw bench re\"'");
    EXPECT_EQ(asked.output.rfind("report\t", 0), 0u) << asked.output;
  }
  if (!missing.empty()) GTEST_SKIP() << "not read by" << missing << ": not on this machine";
}

// The text of the page's section that a subcommand has, or shares with others.
std::string section_of(const std::string& page, const std::string& path) {
  std::string escaped = std::regex_replace("tw " + path, std::regex("-"), "\\-");
  const std::string own = ".SS " + escaped + " ", listed = ".TP\n\\fB" + escaped + "\\fR\n";
  std::size_t begin = page.find("\n" + own);
  if (begin == std::string::npos) {
    const std::size_t at = page.find(listed);
    if (at == std::string::npos) return "";
    begin = page.rfind("\n.SS ", at);
  }
  return page.substr(begin, page.find("\n.S", begin + 4) - begin);
}

TEST(Man, HasEveryOptionOfEverySubcommand) {
  const std::string page = run_tw("man").output;
  const Names of_all = all_help().at("bench").options;  // said once
  for (const auto& [path, help] : all_help()) {
    const std::string text = path.empty() ? page : section_of(page, path);
    ASSERT_FALSE(text.empty()) << path;
    for (const std::string& option : help.options) {
      const std::string bold = "\\fB" + std::regex_replace(option, std::regex("-"), "\\-") + "\\fR";
      EXPECT_TRUE(contains(of_all.contains(option) ? page : text, bold)) << path << " " << option;
    }
  }
  for (const char* part : {".SH NAME", "Exit codes: ", "NO_COLOR"}) EXPECT_TRUE(contains(page, part)) << part;
}

TEST(Man, IsCleanForGroff) {
  if (!has("groff")) GTEST_SKIP() << "groff is not on this machine: the page was read by nobody";
  const Outcome read =
      run_tw("man -o tw.1 && groff -man -ww -Kutf8 -Tutf8 tw.1 2>said >page; echo \"exit $?\"; cat said");
  EXPECT_EQ(read.output, "exit 0\n");
  EXPECT_TRUE(contains(read_work_file("page"), "NO_COLOR")) << read_work_file("page").substr(0, 2000);
}

}  // namespace
}  // namespace tilewright::tw
