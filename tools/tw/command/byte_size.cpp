#include "tw/command/byte_size.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "tensor/memory_budget.h"

namespace tilewright::tw {

std::int64_t bytes_of_text(const std::string& text) {
  const auto refuse = [&](const char* why) {
    throw Error(fmt::format("'{}' is {}: a size is {}", text, why, kSizeForms));
  };
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    refuse("no size");
  }
  std::string unit = text.substr(end);
  std::erase(unit, ' ');
  constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},    {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const auto* const factor = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const auto& known) { return unit == known.first; });
  if (factor == std::end(kUnits) || !std::isfinite(value) || value == 0) refuse("no size");
  if (value < 0) refuse("negative");
  const double bytes = value * factor->second;
  if (bytes >= 0x1p63) refuse("beyond what 63 bits hold");
  if (bytes < 1) refuse("less than a byte");
  return static_cast<std::int64_t>(bytes);
}

void within_memory_option(const std::string& text, const std::string& advice,
                          const std::function<void()>& run) {
  try {
    run();
  } catch (const detail::OverBudget& error) {
    const std::string in_mb =
        error.needed < 1'000'000 ? "" : fmt::format(" ({:.1f} MB)", static_cast<double>(error.needed) * 1e-6);
    throw Error(fmt::format("--memory {} is too little: the least that was found is {} bytes{}. Give it {}",
                            text, error.needed, in_mb, advice));
  }
}

}  // namespace tilewright::tw
