#include "tw/command/byte_size.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

namespace tilewright::tw {

double bytes_of_text(const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    throw Error(fmt::format("'{}' is no size: 64MiB, 2GiB or a number of bytes", text));
  }
  std::string unit = text.substr(end);
  std::erase(unit, ' ');
  const std::vector<std::pair<std::string, double>> units = {
      {"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  if (value < 0)
    throw Error(fmt::format("'{}' is negative: a size is 64MiB, 2GiB or a number of bytes", text));
  for (const auto& [name, factor] : units)
    if (unit == name && value > 0) return value * factor;
  throw Error(fmt::format("'{}' is no size: 64MiB, 2GiB or a number of bytes", text));
}

}  // namespace tilewright::tw
