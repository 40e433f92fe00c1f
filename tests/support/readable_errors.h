// A test program's main function: what it throws, as for a device that is not there, is said in a line.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

namespace tilewright::test {

// The exit code of `run`, or 2.
template <class Run>
int with_readable_errors(std::string_view program, Run&& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 2;
  }
}

}  // namespace tilewright::test
