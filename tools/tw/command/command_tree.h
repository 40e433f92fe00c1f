// The subcommands and options of tw as plain data, read from what CLI11 parses and prints as --help: the one
// table that completion and the page of the manual are made from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tilewright::tw {

// What comes after an option, or stands where a subcommand expects it. `kind` is the word of --help for it:
// "FILE", "DEVICE", "INT"; empty for a flag.
struct CommandValue {
  std::string kind;
  std::vector<std::string> words;  // what it may be, or (with files) begin with; empty: not known
  // Where another word of the line decides what it may be: that word, and what is open with it.
  struct Beside {
    std::string word;
    std::vector<std::string> words;
    friend bool operator==(const Beside&, const Beside&) = default;
  };
  std::vector<Beside> beside = {};
  friend bool operator==(const CommandValue&, const CommandValue&) = default;
};

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its name alone
  CommandValue value;
  std::string about;
  bool required = false;
  friend bool operator==(const CommandOption&, const CommandOption&) = default;
};

struct Command {
  std::string path;  // "tw bench run"
  std::string name;  // "run"
  std::string about, footer;
  std::vector<CommandOption> options, positionals;
  std::vector<Command> subcommands;
};

// The type name of an option that changes a knob of the pair that the line names.
inline constexpr const char* kSettingKind = "KEY=VALUE";

// The type name, for CLI11, of a value that is one of these words, or is made of them: "RECIPE:{char,gpt2}".
std::string type_of_words(const std::string& kind, std::span<const std::string_view> words);

Command command_tree(const CLI::App& app);
// The command and all below it, each before its subcommands.
std::vector<const Command*> all_commands(const Command& root);

}  // namespace tilewright::tw
