// Runs the built tw as a user would, in a folder of its own, for tests.
#pragma once

#include <string>

namespace tilewright::tw {

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr together
};

// `arguments` as in a shell, without the leading "tw"; `prefix` may set variables for it.
Outcome run_tw(const std::string& arguments, const std::string& prefix = "");
// The same on a terminal of its own (`script`, of every Linux); colours and what moves the cursor are in the
// output.
Outcome run_tw_on_terminal(const std::string& arguments, const std::string& prefix = "");
// The folder that the command runs in; made when it is not there.
std::string work_folder();
std::string read_work_file(const std::string& name);  // empty when it is not there

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tilewright::tw
