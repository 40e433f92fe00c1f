// Trees: what is the same for trees of all types.
#include <tilewright/tensor/tree.h>

#include <fmt/format.h>

namespace tilewright::detail {

std::string path_of(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}
std::string path_of(const std::string& path, std::size_t place) {
  return path_of(path, fmt::to_string(place));
}

std::string_view first_name(std::string_view& names) {
  const std::size_t end = std::min(names.find(','), names.size());
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(names.find_first_not_of(", ", end), names.size()));
  return name;
}

void check_alike(const Leaves& leaves, const Leaves& other) {
  if (leaves.tensors.size() != other.tensors.size())
    throw Error(fmt::format("map_tensors: a tree has {} tensors, another {}", leaves.tensors.size(),
                            other.tensors.size()));
}

}  // namespace tilewright::detail
