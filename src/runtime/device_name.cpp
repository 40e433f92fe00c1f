// Reading the names of devices, for all who take one.
#include "runtime/device_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>

namespace tilewright::runtime {

namespace {

struct Kind {
  std::string_view name;  // libtw_NAME.so is the backend
  bool numbered = false;  // a machine may have several: NAME:0, NAME:1 …
};
constexpr Kind kKinds[] = {{"cpu"}, {"cuda", true}, {"reference"}};

const Kind* find_kind(std::string_view name) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [name](const Kind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

// "cpu, cuda:N and reference"
std::string all_names() {
  std::string text;
  for (const Kind& kind : kKinds) {
    if (!text.empty()) text += &kind == std::end(kKinds) - 1 ? " and " : ", ";
    text += fmt::format("{}{}", kind.name, kind.numbered ? ":N" : "");
  }
  return text;
}

// The number behind the colon.
std::optional<int> ordinal_from(const std::string& text) {
  int ordinal = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, ordinal);
  if (text.empty() || error != std::errc() || rest != end || ordinal < 0) return std::nullopt;
  return ordinal;
}

}  // namespace

std::string DeviceName::full() const {
  const Kind* known = find_kind(kind);
  return known && known->numbered ? fmt::format("{}:{}", kind, ordinal) : kind;
}

Result<DeviceName> parse_device_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  const Kind* kind = find_kind(std::string_view(name).substr(0, colon));
  if (kind && colon == std::string::npos) return DeviceName{name};
  if (kind && kind->numbered)
    if (const auto ordinal = ordinal_from(name.substr(colon + 1)))
      return DeviceName{std::string(kind->name), *ordinal};
  return failure(Failure::Kind::invalid,
                 fmt::format("unknown device '{}'; devices are {}", name, all_names()));
}

}  // namespace tilewright::runtime
