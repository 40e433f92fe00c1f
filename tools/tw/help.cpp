// tw help: what --help of a subcommand prints.
#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tw/command/commands.h"

namespace tilewright::tw {

void add_help(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("help", "The help of tw or of a subcommand: tw help bench run");
  auto path = std::make_shared<std::vector<std::string>>();
  sub->add_option("command", *path, "The subcommand's name, and that of one below it (default: tw itself)")
      ->type_name("COMMAND");
  sub->callback([path, &app] {
    const CLI::App* command = &app;
    std::string called = app.get_name();
    for (const std::string& name : *path) {
      const auto known = command->get_subcommands([](const CLI::App*) { return true; });
      const auto next = std::find_if(known.begin(), known.end(),
                                     [&](const CLI::App* each) { return each->get_name() == name; });
      if (next == known.end()) {
        std::string names;
        for (const CLI::App* each : known) names += (names.empty() ? "" : ", ") + each->get_name();
        throw Error(names.empty() ? fmt::format("{} has no subcommands, and no '{}'", called, name)
                                  : fmt::format("{} has no subcommand '{}'; known: {}", called, name, names));
      }
      command = *next;
      called += " " + name;
    }
    // App::help() would follow the subcommands that were asked for, of which this is one.
    fmt::print("{}", app.get_formatter()->make_help(command, called, CLI::AppFormatMode::Normal));
  });
}

}  // namespace tilewright::tw
