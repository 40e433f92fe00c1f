// tw, the one command. Each subcommand is a file of its own and a line here.
#include <tilewright/base/error.h>
#include <tilewright/version.h>

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "base/plain_message.h"
#include "harness/run/environment.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"

namespace {

// "tw roofline matmul": the subcommand that the arguments got to.
std::string path_to(const CLI::App* app) {
  const auto chosen = app->get_subcommands();
  return app->get_name() + (chosen.empty() ? "" : " " + path_to(chosen.front()));
}

// CLI11 says "a subcommand is required" when it met one that it does not know.
std::string unknown_subcommand(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const auto known = app->get_subcommands([](const CLI::App*) { return true; });
  if (known.empty() || app->remaining().empty() || app->remaining().front().starts_with('-')) return {};
  std::string names;
  for (const CLI::App* sub : known) names += (names.empty() ? "" : ", ") + sub->get_name();
  return fmt::format("unknown subcommand '{}'; known: {}", app->remaining().front(), names);
}

// CLI11 says "what is required" where an argument is missing, also behind an option that it does not know,
// and otherwise lists that option with all that stands behind it.
std::string unknown_argument(const CLI::App* app, const CLI::Error& error) {
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  if (!is(CLI::ExitCodes::RequiredError) && !is(CLI::ExitCodes::ExtrasError)) return {};
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const std::vector<std::string> rest = app->remaining();
  for (const std::string& each : rest)
    if (each.size() > 1 && each.front() == '-')
      return fmt::format("unknown option '{}'", each.substr(0, each.find('=')));
  if (is(CLI::ExitCodes::RequiredError) || rest.empty()) return {};
  return fmt::format("one argument too many: '{}'", rest.front());
}

// CLI11 says the name of an argument that is missing, and not what it is.
std::string missing_argument(const CLI::App* app, const CLI::Error& error) {
  if (error.get_name() != "RequiredError") return {};
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const std::string said = error.what();
  const CLI::Option* option = app->get_option_no_throw(said.substr(0, said.find(' ')));
  if (option == nullptr || option->nonpositional() || option->get_description().empty()) return {};
  return fmt::format("'{}' is missing: {}", option->get_name(), option->get_description());
}

std::string failure_message(const CLI::App* app, const CLI::Error& error) {
  std::string said = unknown_subcommand(app);
  if (said.empty()) said = unknown_argument(app, error);
  if (said.empty()) said = missing_argument(app, error);
  if (said.empty()) said = error.what();
  return fmt::format("tw: {}\n`{} --help` says what is accepted\n", said, path_to(app));
}

// "tw 0.1.0 (6c4e79589abc)"
std::string version_text() {
  const auto commit = tilewright::lab::built_commit();
  return fmt::format("tw {}{}", tilewright::library_version(),
                     commit.empty() ? "" : fmt::format(" ({})", commit));
}

// Says why nothing more is done, as the last line also where stdout goes into the same pipe.
int fail(int code, const std::string& why) {
  std::fflush(stdout);
  fmt::print(stderr, "tw: {}\n", why);
  return code;
}

// A standard stream that is closed is one that cannot be read or written: what is opened next would take its
// number, and with it what is printed.
void occupy_closed_streams() {
  for (const int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) == -1) (void)::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

// What could not be written was not done. A reader that went away wants no more: nothing is said of that.
int with_output_written(int code) {
  int error = std::fflush(stdout) == 0 ? 0 : errno;
  // An earlier part is missing: asked once more, the stream says why.
  if (error == 0 && std::ferror(stdout) != 0)
    error = std::fputc('\n', stdout) == EOF || std::fflush(stdout) != 0 ? errno : EIO;
  if (error == 0 || error == EPIPE) return code;
  fmt::print(stderr, "tw: cannot write the output: {}\n", std::strerror(error));
  return code == 0 ? 1 : code;
}

// CLI11's own form of --help-all lists the subcommands of a subcommand and leaves out their options.
void print_all_help(const CLI::App& app, const std::string& above) {
  const std::string path = above.empty() ? app.get_name() : above + " " + app.get_name();
  // A command that was asked for by name: its help is what help() of those above it gives.
  if (const auto asked = app.get_subcommands(); !asked.empty()) return print_all_help(*asked.front(), path);
  fmt::print("{}\n", app.help(above));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    print_all_help(*sub, path);
}

int run(int argc, char** argv) {
  CLI::App app{"Tilewright: tensor programs, and how far they are from what the hardware allows."};
  app.name("tw");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Print the version and the commit it was built from");
  app.set_help_all_flag("--help-all", "Print the help of every subcommand and exit");
  app.failure_message(failure_message);
  tilewright::tw::add_devices(app);
  tilewright::tw::add_roofline(app);
  tilewright::tw::add_explain(app);
  tilewright::tw::add_kernel(app);
  tilewright::tw::add_bench(app);
  tilewright::tw::add_tokenize(app);
  tilewright::tw::add_train(app);
  tilewright::tw::add_cache(app);
  tilewright::tw::add_doctor(app);
  tilewright::tw::add_completion(app);
  tilewright::tw::add_man(app);
  tilewright::tw::add_help(app);
  tilewright::tw::check_numbers(app);
  app.footer(
      "Exit codes: 0 done; 1 could not be done (no such device on this machine, a file that cannot be "
      "written, nothing measured), or the answer is no; 2 asked for wrongly (an unknown name, a value out of "
      "range, a file to read that is not there or not what it should be); 130 interrupted.\n"
      "Environment: NO_COLOR, set to anything, turns colours off; XDG_CACHE_HOME is where compiled kernels "
      "and "
      "measured ceilings are kept, in tilewright/ (default ~/.cache).");

  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForAllHelp&) {
      print_all_help(app, "");
    }
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a subcommand that has said everything itself
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const tilewright::Unavailable& error) {
    return fail(1, tilewright::without_place(error));
  } catch (const tilewright::Error& error) {
    return fail(2, tilewright::without_place(error));  // a line of ours is none of the user's
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return 0;  // with_output_written() says it
    return fail(1, tilewright::without_place(error));
  } catch (const std::exception& error) {
    return fail(1, tilewright::without_place(error));
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  return with_output_written(run(argc, argv));
}
