// Checks of numbers after an option. CLI11's own print the largest float64 in their messages.
#pragma once

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdlib>
#include <string>

namespace tilewright::tw {

inline CLI::Validator number_check(bool (*accepts)(double), const char* what) {
  return CLI::Validator(
      [accepts, what](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool whole = end != text.c_str() && *end == 0 && std::isfinite(value);
        return whole && accepts(value) ? "" : "'" + text + "' is not " + what;
      },
      "");
}

inline CLI::Validator positive() {
  return number_check([](double value) { return value > 0; }, "a positive number");
}
inline CLI::Validator not_negative() {
  return number_check([](double value) { return value >= 0; }, "a number from 0 on");
}

inline CLI::Validator at_least_one() {
  return number_check([](double value) { return value >= 1; }, "at least 1");
}

}  // namespace tilewright::tw
