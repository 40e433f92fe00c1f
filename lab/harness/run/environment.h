// Reads the conditions of a run from the machine, and names what makes its figures doubtful.
#pragma once

#include "harness/run/record.h"

#include <string_view>

namespace tilewright::lab {

// Facts that only the caller has.
struct EnvironmentOptions {
  std::uint64_t seed = 0;
  std::string gpu_name = {}, gpu_driver = {};
  std::vector<std::pair<std::string, std::string>> options = {};
  std::string root = "/";  // of the file system to read; tests bring a small one
};
// The commit that the lab was built from, "-dirty" behind it where files differed; "" where that is not
// known.
std::string_view built_commit();
Environment read_environment(const EnvironmentOptions& options);

// What a reader of the figures must know: a busy or throttled machine, limits of a container, a virtual
// machine.
std::vector<std::string> warnings(const Environment& environment);

// The name under which expectations for this hardware are kept: "amd-epyc-9b45-2c", "nvidia-h200".
// `device` is "cpu" or "cuda:N".
std::string hardware_key(const Environment& environment, const std::string& device);

}  // namespace tilewright::lab
