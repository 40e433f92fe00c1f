// Where the results of a subcommand go, and in which form: one convention for all of them. Standard output
// has results and nothing else; what is said meanwhile goes to standard error.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "tw/command/progress.h"

namespace CLI {
class App;
}

namespace tilewright::tw {

struct OutputOptions {
  bool json = false;   // --json
  std::string path;    // --output; empty: standard output
  bool quiet = false;  // --quiet: no progress, no remarks

  // JSON instead of text: by --json, or by a file's name that ends in .json.
  bool as_json() const { return json || path.ends_with(".json"); }
  Progress progress() const { return quiet ? Progress::silent : Progress::shown; }
  // Whether the results are text on standard output, for who sits in front of it.
  bool is_shown() const { return path.empty() && !as_json(); }
};

// --json, --output FILE and --quiet. `json` says what that is: "a list, an object for each device".
void add_output_options(CLI::App& sub, OutputOptions& options, const std::string& json);
// Parts of it, for results that have one form: --output FILE with what it says, and --quiet.
void add_output_file(CLI::App& sub, OutputOptions& options,
                     const std::string& about = "Write the results to this file instead of standard output");
void add_quiet(CLI::App& sub, OutputOptions& options);

// Throws Error where the file could not be written: to be asked before minutes of work.
void check_output(const OutputOptions& options);
// Writes the results: to standard output, or as all that the file holds, which then is there as a whole or as
// it was before; to a device or a pipe (/dev/null) as it is. Throws std::runtime_error where it cannot be
// written.
void write_results(const OutputOptions& options, std::string_view text);
// The stream for remarks about results: standard output, below them, if they are shown there, else standard
// error. Null with --quiet.
std::FILE* remarks(const OutputOptions& options);

// Whether what is printed to this stream may have colours: it is a terminal, and NO_COLOR is not set
// (https://no-color.org).
bool has_colours(int stream);

}  // namespace tilewright::tw
