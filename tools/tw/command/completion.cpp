// Completion: each script finds the subcommand that the words before the cursor got to ("tw bench run"), and
// offers values of the option before the cursor, options, subcommands, or files where nothing else is known.
#include "tw/command/completion.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tw/command/commands.h"
#include "tw/command/output.h"
#include "tw/command/shell_word.h"

namespace tilewright::tw {

namespace {

// The text in single quotes of fish, in which a backslash means something.
std::string fish_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// What a case of a script does → the patterns that lead to it, in the order in which they were found.
class Cases {
 public:
  void add(const std::string& pattern, const std::string& body) {
    if (body.empty()) return;
    if (!patterns_.contains(body)) order_.push_back(body);
    patterns_[body].push_back(pattern);
  }
  // `form` has places for the patterns, joined by `between`, and the body.
  std::string text(std::string_view form, std::string_view between) const {
    std::string out;
    for (const std::string& body : order_)
      out += fmt::format(fmt::runtime(form), fmt::join(patterns_.at(body), between), body);
    return out;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> patterns_;
};

std::string paths_below(const Command& root, std::string_view between) {
  std::vector<std::string> paths;
  for (const Command* command : all_commands(root))
    if (command != &root) paths.push_back(shell_word(command->path));
  return fmt::format("{}", fmt::join(paths, between));
}

std::string words_text(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const CommandOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> subcommand_names(const Command& command) {
  std::vector<std::string> names;
  names.reserve(command.subcommands.size());
  for (const Command& sub : command.subcommands) names.push_back(sub.name);
  return names;
}

// What is known of the first argument that is no option.
std::vector<std::string> words_of_first_place(const Command& command) {
  return command.positionals.empty() ? std::vector<std::string>{} : command.positionals.front().value.words;
}

// What may stand where no option does.
std::vector<std::string> places(const Command& command) {
  std::vector<std::string> words = subcommand_names(command);
  const std::vector<std::string> more = words_of_first_place(command);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Calls `each` with a pattern of the subcommand and the option before the cursor, "'tw bench run
// --ceilings'", and the value of that option: "*' --cache'" where it takes the same wherever it is.
template <class F>
void for_values(const Command& root, F&& each) {
  struct Taken {
    std::string path;
    CommandValue value;
  };
  std::map<std::string, std::vector<Taken>> by_name;
  for (const Command* command : all_commands(root))
    for (const CommandOption& option : command->options)
      for (const std::string& name : option.names)
        if (!option.value.kind.empty()) by_name[name].push_back({command->path, option.value});
  for (const auto& [name, taken] : by_name) {
    const CommandValue& first = taken.front().value;
    const bool same = std::all_of(taken.begin(), taken.end(), [&](const Taken& t) {
      return t.value.words == first.words && t.value.beside == first.beside;
    });
    if (same) each("*" + shell_word(" " + name), first);
    for (const Taken& t : taken)
      if (!same) each(shell_word(t.path + " " + name), t.value);
  }
}

// What a script does for a value: `offer` makes words of a known list, "case" asks for the word beside which
// they hold.
template <class F>
std::string offered(const CommandValue& value, std::string_view form, F&& offer) {
  if (value.beside.empty()) return offer(value.words);
  Cases cases;
  for (const CommandValue::Beside& beside : value.beside)
    cases.add(shell_word(beside.word), offer(beside.words));
  return fmt::format("case $beside in {}esac", cases.text(form, " | "));
}

// Words beside which others hold, wherever they are.
std::string words_beside(const Command& root, std::string_view between) {
  std::vector<std::string> words;
  for (const Command* command : all_commands(root))
    for (const CommandOption& option : command->options)
      for (const CommandValue::Beside& beside : option.value.beside)
        if (std::find(words.begin(), words.end(), shell_word(beside.word)) == words.end())
          words.push_back(shell_word(beside.word));
  return fmt::format("{}", fmt::join(words, between));
}

}  // namespace

std::string bash_completion(const Command& root) {
  Cases values, options, words;
  const auto offer = [](const std::vector<std::string>& known) {
    return "words=" + shell_word(words_text(known));
  };
  for_values(root, [&](const std::string& at, const CommandValue& value) {
    values.add(at, offered(value, "{}) {} ;; ", offer));
  });
  for (const Command* command : all_commands(root)) {
    options.add(shell_word(command->path), "words=" + shell_word(words_text(option_names(*command))));
    words.add(shell_word(command->path), "words=" + shell_word(words_text(places(*command))));
  }
  constexpr std::string_view kCase = "    {}) {} ;;\n";
  return fmt::format(
      R"bash(# Completion of tw for bash, made by `tw completion bash`: to be sourced, or kept in
# ~/.local/share/bash-completion/completions/tw.
_tw() {{
  local line=${{COMP_LINE:0:COMP_POINT}} command=tw previous= beside= words= word before
  local current=${{line##*[[:space:]]}}
  read -ra before <<<"${{line%"$current"}}"
  for word in "${{before[@]:1}}"; do
    case "$command $word" in
      {}) command+=" $word" ;;
    esac
    case $word in
      {}) beside=$word ;;
    esac
    previous=$word
  done
  if [[ $current == --*=* ]]; then
    previous=${{current%%=*}}
    current=${{current#*=}}
  fi
  case "$command $previous" in
{}    *)
      if [[ $current == -* ]]; then
        case $command in
{}        esac
      else
        case $command in
{}        esac
      fi
      ;;
  esac
  # What stands before the last colon or equals sign is on the line already: there readline parts words.
  local kept=${{current%"${{current##*[:=]}}"}}
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  COMPREPLY=("${{COMPREPLY[@]#"$kept"}}")
}}
complete -o default -F _tw tw
)bash",
      paths_below(root, " | "), words_beside(root, " | "), values.text(kCase, " | "),
      options.text(kCase, " | "), words.text(kCase, " | "));
}

namespace {

// 'name:what it is about' for _describe.
std::string described(const std::string& name, const std::string& about) {
  std::string text;
  for (const char c : name) text += c == ':' ? std::string("\\:") : std::string(1, c);
  return shell_word(text + ":" + about);
}

}  // namespace

std::string zsh_completion(const Command& root) {
  Cases values, options, subcommands, words;
  const auto offer = [](const std::vector<std::string>& known) {
    return known.empty() ? "_files; return" : fmt::format("compadd -- {}; return", words_text(known));
  };
  for_values(root, [&](const std::string& at, const CommandValue& value) {
    values.add(at, offered(value, "({}) {} ;; ", offer) + (value.beside.empty() ? "" : "; return"));
  });
  for (const Command* command : all_commands(root)) {
    std::vector<std::string> names, below;
    for (const CommandOption& option : command->options)
      for (const std::string& name : option.names) names.push_back(described(name, option.about));
    for (const Command& sub : command->subcommands) below.push_back(described(sub.name, sub.about));
    if (!below.empty())  // one list of both
      for (const std::string& word : words_of_first_place(*command))
        below.push_back(described(word, command->positionals.front().names.front()));
    options.add(shell_word(command->path), fmt::format("options=({})", fmt::join(names, " ")));
    if (!below.empty())
      subcommands.add(shell_word(command->path), fmt::format("subcommands=({})", fmt::join(below, " ")));
    else if (const auto known = places(*command); !known.empty())
      words.add(shell_word(command->path), fmt::format("compadd -- {}", words_text(known)));
  }
  constexpr std::string_view kCase = "    ({}) {} ;;\n";
  return fmt::format(
      R"zsh(#compdef tw
# Completion of tw for zsh, made by `tw completion zsh`: kept as _tw in a folder of $fpath.
_tw() {{
  local command=tw previous= beside= word
  local -a options subcommands
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
      ({}) command+=" $word" ;;
    esac
    case $word in
      ({}) beside=$word ;;
    esac
    previous=$word
  done
  case "$command $previous" in
{}  esac
  case $command in
{}  esac
  case $command in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
    return
  fi
  if (( $#subcommands )); then
    _describe subcommand subcommands
    return
  fi
  case $command in
{}  esac
  _files
}}
if [[ $funcstack[1] == _tw ]]; then
  _tw "$@"
else
  compdef _tw tw
fi
)zsh",
      paths_below(root, " | "), words_beside(root, " | "), values.text(kCase, " | "),
      options.text(kCase, " | "), subcommands.text(kCase, " | "), words.text(kCase, " | "));
}

std::string fish_completion(const Command& root) {
  // Options that are the same in several subcommands are one line, under the condition that one of these is
  // under way.
  Cases lines;
  const auto at = [](const Command& command) { return fish_word(command.path); };
  for (const Command* command : all_commands(root)) {
    for (const CommandOption& option : command->options) {
      std::string line;
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.value.kind.empty()) line += " -r";
      if (!option.value.words.empty()) line += " -a " + fish_word(words_text(option.value.words));
      lines.add(at(*command), line + " -d " + fish_word(option.about));
      for (const CommandValue::Beside& beside : option.value.beside)
        lines.add(at(*command), fmt::format(" -n \"contains -- {} (commandline -opc)\"{} -f -a {}",
                                            beside.word, line, fish_word(words_text(beside.words))));
    }
    for (const Command& sub : command->subcommands)
      lines.add(at(*command), fmt::format(" -f -a {} -d {}", sub.name, fish_word(sub.about)));
    if (const auto words = words_of_first_place(*command); !words.empty())
      lines.add(at(*command), " -a " + fish_word(words_text(words)));
  }
  return fmt::format(
      R"fish(# Completion of tw for fish, made by `tw completion fish`: kept in ~/.config/fish/completions/tw.fish.
function __tw_at
  set -l command tw
  set -l before (commandline -opc)
  set -e before[1]
  for word in $before
    switch "$command $word"
      case {}
        set command "$command $word"
    end
  end
  contains -- $command $argv
end
{})fish",
      paths_below(root, " "), lines.text("complete -c tw -n \"__tw_at {}\"{}\n", " "));
}

void add_completion(CLI::App& app) {
  struct Input {
    std::string shell;
    OutputOptions output;
  };
  auto in = std::make_shared<Input>();
  CLI::App* sub = app.add_subcommand("completion", "A script by which a shell completes this command's line");
  sub->add_option("shell", in->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_output_file(*sub, in->output);
  sub->callback([in, &app] {
    const Command root = command_tree(app);
    write_results(in->output, in->shell == "bash"  ? bash_completion(root)
                              : in->shell == "zsh" ? zsh_completion(root)
                                                   : fish_completion(root));
  });
}

}  // namespace tilewright::tw
