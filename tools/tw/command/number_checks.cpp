// Numbers as strtod() and strtoll() read them: what CLI11 does as well.
#include "tw/command/number_checks.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace tilewright::tw {

namespace {

// CLI11 itself says where a negative number is not wanted.
template <auto read>
std::string why_no_integer(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  (void)read(text.c_str(), &end, 0);
  if (end == text.c_str() || *end != 0) return fmt::format("'{}' is not a whole number", text);
  return errno == ERANGE ? fmt::format("'{}' is beyond what 64 bits hold", text) : "";
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == 0 ? std::optional(value) : std::nullopt;
}

std::string why_not_finite(const std::string& text) {
  const std::optional<double> value = number_in(text);
  return value && !std::isfinite(*value) ? fmt::format("'{}' is not a finite number", text) : "";
}

CLI::Validator number_check(const std::function<bool(double)>& accepts, const std::string& what) {
  return CLI::Validator(
      [accepts, what](std::string& text) {
        const std::optional<double> value = number_in(text);
        return value && std::isfinite(*value) && accepts(*value) ? ""
                                                                 : fmt::format("'{}' is not {}", text, what);
      },
      "");
}

}  // namespace

CLI::Validator positive() {
  return number_check([](double value) { return value > 0; }, "a positive number");
}
CLI::Validator not_negative() {
  return number_check([](double value) { return value >= 0; }, "a number from 0 on");
}
CLI::Validator at_least(long long least) {
  return number_check([least](double value) { return value >= static_cast<double>(least); },
                      fmt::format("at least {}", least));
}
CLI::Validator share() {
  return number_check([](double value) { return value >= 0 && value <= 1; }, "a number from 0 to 1");
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string kind = option->get_type_name();  // as CLI11 names the type of what it fills in
    if (kind == "INT") option->check(CLI::Validator(why_no_integer<std::strtoll>, ""));
    if (kind == "UINT") option->check(CLI::Validator(why_no_integer<std::strtoull>, ""));
    if (kind == "FLOAT") option->check(CLI::Validator(why_not_finite, ""));
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) check_numbers(*sub);
}

}  // namespace tilewright::tw
