// Reading the names of devices, for all who take one.
#include "runtime/device_name.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tilewright::runtime {

namespace {

// The number after "cuda:".
std::optional<int> ordinal_from(const std::string& text) {
  int ordinal = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, ordinal);
  if (text.empty() || error != std::errc() || rest != end || ordinal < 0) return std::nullopt;
  return ordinal;
}

}  // namespace

std::string DeviceName::full() const { return kind == "cuda" ? fmt::format("cuda:{}", ordinal) : kind; }

Result<DeviceName> parse_device_name(const std::string& name) {
  if (name == "cpu" || name == "reference" || name == "cuda") return DeviceName{name};
  if (name.starts_with("cuda:"))
    if (const auto ordinal = ordinal_from(name.substr(5))) return DeviceName{"cuda", *ordinal};
  return failure(Failure::Kind::invalid,
                 fmt::format("unknown device '{}'; devices are cpu, cuda:N and reference", name));
}

}  // namespace tilewright::runtime
