// Trees: what is the same for trees of all types.
#include <tilewright/tensor/signature.h>
#include <tilewright/tensor/tree.h>

#include "tensor/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace tilewright {

const Tensor& at(const NamedTensors& tensors, const std::string& name, const Location& where) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  if (found != tensors.end()) return found->tensor;
  throw Error(fmt::format("at: of the {} tensors none is called \"{}\"", tensors.size(), name), where);
}
Tensor at(NamedTensors&& tensors, const std::string& name, const Location& where) {
  return at(std::as_const(tensors), name, where);
}

}  // namespace tilewright

namespace tilewright::detail {

Leaves::Leaves() = default;
Leaves::Leaves(std::vector<Tensor> its_tensors, Structure its_structure, Paths* its_paths)
    : tensors(std::move(its_tensors)), structure(std::move(its_structure)), paths(its_paths) {}
Leaves::Leaves(const Leaves&) = default;
Leaves::Leaves(Leaves&&) noexcept = default;
Leaves& Leaves::operator=(const Leaves&) = default;
Leaves& Leaves::operator=(Leaves&&) noexcept = default;
Leaves::~Leaves() = default;

void add_tensor(Leaves& to, const Tensor& t) {
  to.tensors.push_back(t);
  if (to.paths) to.paths->tensors.push_back(to.paths->here);
}
void add_number(Leaves& to, std::int64_t number) { to.structure.push_back(number); }

namespace {
void enter(Paths& paths, std::string_view name) {
  paths.ends.push_back(paths.here.size());
  if (!paths.here.empty()) paths.here += '.';
  paths.here += name;
}
}  // namespace

void enter_member(Leaves& to, std::string_view& names) {
  if (to.paths) enter(*to.paths, first_name(names));
}
void enter_element(Leaves& to, std::size_t place) {
  if (to.paths) enter(*to.paths, fmt::to_string(place));
}
void leave(Leaves& to) {
  if (!to.paths) return;
  to.paths->here.resize(to.paths->ends.back());
  to.paths->ends.pop_back();
}

NamedTensors named(const Leaves& leaves) {
  NamedTensors out;
  out.reserve(leaves.tensors.size());
  for (std::size_t i = 0; i < leaves.tensors.size(); ++i)
    out.push_back({leaves.paths->tensors[i], leaves.tensors[i]});
  return out;
}

void check_alike(const Leaves& leaves, const Leaves& other, std::size_t number, const Location& where) {
  if (leaves.tensors.size() != other.tensors.size())
    throw Error(fmt::format("map_tensors: tree 0 has {} tensors, tree {} has {}", leaves.tensors.size(),
                            number, other.tensors.size()),
                where);
}

namespace {
// ".layers[3].w" of "layers.3.w": as a user's source says it.
std::string member_text(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, end);
    const bool is_place = part[0] >= '0' && part[0] <= '9';
    text += is_place ? fmt::format("[{}]", part) : fmt::format(".{}", part);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return text;
}

}  // namespace

void name_argument(Paths& paths, std::size_t argument, std::size_t first) {
  for (std::size_t i = first; i < paths.tensors.size(); ++i) {
    std::string& path = paths.tensors[i];
    path = path.empty() ? fmt::format("argument {}", argument)
                        : fmt::format("argument {}, {}", argument, member_text(path));
  }
}

std::vector<Tensor> tensors_for(const NamedTensors& own, const NamedTensors& named, const Location& where) {
  constexpr std::size_t kMostListed = 10;
  std::vector<std::string> wrong;
  std::map<std::string_view, const Tensor*> by_name;
  for (const NamedTensor& t : named)
    if (!by_name.emplace(t.name, &t.tensor).second) wrong.push_back(t.name + " is there twice");
  std::vector<Tensor> found;
  found.reserve(own.size());
  for (const NamedTensor& t : own) {
    const auto at = by_name.find(t.name);
    if (at == by_name.end()) {
      wrong.push_back(t.name + " is missing");
      continue;
    }
    if (t.tensor.defined()) {
      const ir::Type type{at->second->dtype(where), at->second->shape(where)};
      if (const ir::Type wanted{t.tensor.dtype(where), t.tensor.shape(where)}; !(type == wanted))
        wrong.push_back(
            fmt::format("{} is {}, the tree's is {}", t.name, to_string(type), to_string(wanted)));
    }
    found.push_back(*at->second);
    by_name.erase(at);
  }
  for (const auto& [name, tensor] : by_name) wrong.push_back(fmt::format("{} is none of the tree's", name));
  if (wrong.empty()) return found;
  const std::size_t count = wrong.size();
  wrong.resize(std::min(count, kMostListed));
  throw Error(fmt::format("with_tensors: {}{}", fmt::join(wrong, "; "),
                          count > kMostListed ? fmt::format("; and {} more", count - kMostListed) : ""),
              where);
}

}  // namespace tilewright::detail
