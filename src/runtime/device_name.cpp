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

constexpr BackendKind kKinds[] = {
    {"cpu"}, {.name = "cuda", .numbered = true, .is_host = false}, {"reference"}};

const BackendKind* find_kind(std::string_view name) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [name](const BackendKind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

// "cpu, cuda:N and reference"
std::string all_names() {
  std::string text;
  for (const BackendKind& kind : kKinds) {
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

std::span<const BackendKind> backend_kinds() { return kKinds; }

std::string DeviceName::full() const {
  const BackendKind* known = find_kind(kind);
  return known && known->numbered ? fmt::format("{}:{}", kind, ordinal) : kind;
}

bool DeviceName::is_host() const {
  const BackendKind* known = find_kind(kind);
  return known && known->is_host;
}

Result<DeviceName> parse_device_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  const BackendKind* kind = find_kind(std::string_view(name).substr(0, colon));
  if (kind && colon == std::string::npos) return DeviceName{name};
  if (kind && kind->numbered)
    if (const auto ordinal = ordinal_from(name.substr(colon + 1)))
      return DeviceName{std::string(kind->name), *ordinal};
  return failure(Failure::Kind::invalid,
                 fmt::format("unknown device '{}'; devices are {}", name, all_names()));
}

}  // namespace tilewright::runtime
