// Tensors by name.
#include "formats/named_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tilewright {

const Tensor& at(const NamedTensors& tensors, const std::string& name, const Location& where) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  if (found != tensors.end()) return found->tensor;
  throw Error(fmt::format("at: of the {} tensors none is called \"{}\"", tensors.size(), name), where);
}

namespace formats {

void check_names(const NamedTensors& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const NamedTensor& t : tensors) names.emplace_back(t.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(fmt::format("two tensors are called \"{}\"", *twice));
}

}  // namespace formats

}  // namespace tilewright
