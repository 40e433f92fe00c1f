// Walking CLI::App.
#include "tw/command/command_tree.h"

#include <tilewright/base/dtype.h>
#include <tilewright/passes/graph/precision.h>
#include <tilewright/perf/hardware.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pairs/pairs.h"
#include "runtime/device_name.h"
#include "sweep/families.h"

namespace tilewright::tw {

namespace {

// What a value of this kind may be. Kinds are the type names that the subcommands give their options.
std::vector<std::string> words_of_kind(const std::string& kind) {
  std::vector<std::string> words;
  if (kind == "DEVICE")
    for (const runtime::BackendKind& backend : runtime::backend_kinds())
      words.push_back(runtime::DeviceName{std::string(backend.name)}.full());
  if (kind == "DTYPE")
    for (const DType dtype : kAllDTypes) words.emplace_back(name(dtype));
  if (kind == "HARDWARE" || kind == "MACHINE")
    for (const perf::Hardware& hardware : perf::known_hardware()) words.push_back(hardware.name);
  if (kind == "HARDWARE") words.insert(words.end(), {"here", "here:cuda:0"});
  if (kind == "PRECISION")
    for (const Precision precision : kAllPrecisions) words.emplace_back(name(precision));
  if (kind == "FAMILY")
    for (const sweep::Family& family : sweep::all_families()) words.emplace_back(family.name);
  if (kind == "PAIR" || kind == "WORK")
    for (const lab::Pair& pair : lab::all_pairs())
      if (pair.is_program || kind == "WORK") words.push_back(pair.name);
  if (kind == "WORK")
    for (const lab::Suite& suite : lab::all_suites()) words.push_back(suite.name);
  return words;
}

// "dtype=f32": what a knob may be, or where every value of its type will do those that it is measured with.
std::vector<std::string> settings_of(const lab::Pair& pair) {
  std::vector<std::string> words;
  for (const lab::Knob& knob : pair.knobs) {
    std::vector<lab::KnobValue> values = knob.choices;
    if (values.empty()) values = knob.values;
    if (knob.choices.empty()) values.insert(values.end(), knob.cuda_values.begin(), knob.cuda_values.end());
    for (const lab::KnobValue& value : values) {
      std::string word = fmt::format("{}={}", knob.name, lab::to_string(value));
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
    }
  }
  return words;
}

std::vector<CommandValue::Beside> words_beside(const std::string& kind) {
  std::vector<CommandValue::Beside> all;
  if (kind == kSettingKind)
    for (const lab::Pair& pair : lab::all_pairs()) all.push_back({pair.name, settings_of(pair)});
  return all;
}

// "TEXT:{auto,measure,none}": what CLI::IsMember lets pass stands in braces.
CommandValue value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.find('}');
  CommandValue value{type.substr(0, type.find(':')), {}};
  if (open == std::string::npos || close == std::string::npos) {
    value.words = words_of_kind(value.kind);
    value.beside = words_beside(value.kind);
  } else {
    value.words = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  }
  return value;
}

CommandOption read_option(const CLI::Option& option) {
  CommandOption out{{}, value_of(option), option.get_description(), option.get_required()};
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (option.get_positional()) out.names = {option.get_name(true)};
  return out;
}

Command read_command(const CLI::App& app, const std::string& above) {
  Command out{.path = above + app.get_name(),
              .name = app.get_name(),
              .about = app.get_description(),
              .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? out.positionals : out.options).push_back(read_option(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    out.subcommands.push_back(read_command(*sub, out.path + " "));
  return out;
}

void collect(const Command& command, std::vector<const Command*>& all) {
  all.push_back(&command);
  for (const Command& sub : command.subcommands) collect(sub, all);
}

}  // namespace

std::string type_of_words(const std::string& kind, std::span<const std::string_view> words) {
  return fmt::format("{}:{{{}}}", kind, fmt::join(words, ","));
}

Command command_tree(const CLI::App& app) { return read_command(app, ""); }

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> all;
  collect(root, all);
  return all;
}

}  // namespace tilewright::tw
