// Options and files of results.
#include "tw/command/output.h"

#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/safe_file.h"

namespace tilewright::tw {

namespace {

constexpr SafeFileOptions kWriting = {.make_folders = true};

// A device or a pipe, such as /dev/null: it takes what is written to it, and has no old contents to keep.
bool is_stream(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return !error && (is_character_file(status) || is_fifo(status));
}

Status write_to_stream(const std::string& path, std::string_view text) {
  std::ofstream to(path);
  if (to << text << std::flush) return Unit{};
  return failure(Failure::Kind::io, path + ": it cannot be written");
}

}  // namespace

void add_output_file(CLI::App& sub, OutputOptions& options, const std::string& about) {
  const auto names_a_file = [](const std::string& path) {
    return path.empty() ? std::string("a file's name is wanted, and this one is empty") : std::string();
  };
  sub.add_option("-o,--output", options.path, about)->type_name("FILE")->check(names_a_file);
}

void add_quiet(CLI::App& sub, OutputOptions& options) {
  sub.add_flag("-q,--quiet", options.quiet, "Say nothing of progress on standard error");
}

void add_output_options(CLI::App& sub, OutputOptions& options, const std::string& json) {
  sub.add_flag("--json", options.json, "Print JSON instead of text: " + json);
  add_output_file(sub, options);
  add_quiet(sub, options);
}

void check_output(const OutputOptions& options) {
  if (options.path.empty() || is_stream(options.path)) return;
  if (const auto file = SafeFile::create(options.path, kWriting); !file)
    throw Unavailable(fmt::format("--output {}: {}", options.path, file.error().message));
}

void write_results(const OutputOptions& options, std::string_view text) {
  if (options.path.empty()) {
    fmt::print("{}", text);
  } else if (const Status written = is_stream(options.path) ? write_to_stream(options.path, text)
                                                            : write_safely(options.path, text, kWriting);
             !written) {
    throw std::runtime_error("--output " + written.error().message);
  }
}

std::FILE* remarks(const OutputOptions& options) {
  if (options.is_shown()) return stdout;
  return options.quiet ? nullptr : stderr;
}

bool has_colours(int stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(stream) != 0 && (no_colour == nullptr || *no_colour == 0);
}

}  // namespace tilewright::tw
