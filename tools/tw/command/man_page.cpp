// Writing man(7): https://man7.org/linux/man-pages/man7/man.7.html
#include "tw/command/man_page.h"

#include <tilewright/version.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "tw/command/commands.h"
#include "tw/command/output.h"

namespace tilewright::tw {

namespace {

// Text that means itself: hyphens stay those of options, and no line begins with a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool first = out.empty() || out.back() == '\n';
    if (first && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string option_line(const CommandOption& option) {
  std::string line;
  for (const std::string& name : option.names) line += (line.empty() ? "" : ", ") + bold(name);
  if (!option.value.kind.empty()) line += " " + italic(option.value.kind);
  return line;
}

// The options as a list, without those in `said`.
std::string options_text(const std::vector<CommandOption>& options,
                         const std::vector<CommandOption>& said = {}) {
  std::string text;
  for (const CommandOption& option : options) {
    if (std::find(said.begin(), said.end(), option) != said.end()) continue;
    text += fmt::format(".TP\n{}\n{}\n", option_line(option), roff(option.about));
    std::string words;
    // Kinds that have a place of their own to be looked up are not listed here again.
    const bool choice = option.value.kind == "TEXT";
    for (const std::string& word : option.value.words) words += (words.empty() ? "" : ", ") + roff(word);
    if (choice && !words.empty()) text += ".br\nOne of: " + words + "\n";
    if (option.required) text += ".br\nRequired.\n";
  }
  return text;
}

std::string synopsis(const Command& command) {
  std::string line;
  for (const CommandOption& positional : command.positionals)
    line += positional.required ? " " + positional.names.front() : " [" + positional.names.front() + "]";
  // A command with subcommands and positionals works without a subcommand, too.
  return line + (command.subcommands.empty() || !line.empty() ? " [options]" : " subcommand");
}

bool alike(const Command& a, const Command& b) {
  return a.options == b.options && a.positionals == b.positionals && a.subcommands.empty() &&
         b.subcommands.empty();
}

// Neighbours that differ in nothing but what they are about share a section: each pair of `tw roofline`.
void add_sections(const Command& root, const Command& parent, std::string& text) {
  const std::vector<Command>& all = parent.subcommands;
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    for (end = first + 1; end < all.size() && alike(all[first], all[end]);) ++end;
    if (end - first == 1) {
      text += fmt::format(".SS {}{}\n{}\n", roff(all[first].path), roff(synopsis(all[first])),
                          roff(all[first].about));
    } else {
      text += fmt::format(".SS {} subcommand{}\nwhere subcommand is one of\n", roff(parent.path),
                          roff(synopsis(all[first])));
      for (std::size_t i = first; i < end; ++i)
        text += fmt::format(".TP\n{}\n{}\n", bold(all[i].path), roff(all[i].about));
      text += ".PP\nEach takes:\n";
    }
    text += options_text(all[first].positionals) + options_text(all[first].options, root.options);
    add_sections(root, all[first], text);
  }
}

}  // namespace

std::string man_page(const Command& root) {
  std::string text = ".\\\" Made by `tw man`, from the table that `tw --help` prints.\n";
  text += fmt::format(".TH TW 1 \"\" \"Tilewright {}\" \"User Commands\"\n", library_version());
  text += fmt::format(".SH NAME\ntw \\- {}\n", roff(root.about));
  text += ".SH SYNOPSIS\n.B tw\n.I subcommand\n[options]\n.SH OPTIONS\n" + options_text(root.options);
  text += ".SH SUBCOMMANDS\nAll of them take \\fB\\-\\-help\\fR and \\fB\\-\\-help\\-all\\fR, too.\n";
  add_sections(root, root, text);
  text += ".SH NOTES\n" + roff(root.footer) + "\n";
  return text;
}

void add_man(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("man", "This command's page of the manual: tw man -o tw.1");
  auto output = std::make_shared<OutputOptions>();
  add_output_file(*sub, *output);
  sub->callback([output, &app] { write_results(*output, man_page(command_tree(app))); });
}

}  // namespace tilewright::tw
