// Names of tensors.
#include "formats/named_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tilewright::formats {

void check_names(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(fmt::format("two tensors are called \"{}\"", *twice));
}

void check_names(const NamedTensors& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const NamedTensor& t : tensors) names.emplace_back(t.name);
  check_names(std::move(names));
}

}  // namespace tilewright::formats
