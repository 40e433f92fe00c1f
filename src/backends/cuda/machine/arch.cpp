// Text of architectures.
#include "backends/cuda/machine/arch.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright::cuda {

Result<Arch> Arch::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  const auto invalid = [&] {
    return failure(
        Failure::Kind::invalid,
        fmt::format("{} is no architecture: name a real one, such as sm_80, sm_90a or sm_120", text));
  };
  if (!text.starts_with(kPrefix)) return invalid();
  std::string_view number = text.substr(kPrefix.size());
  const bool specific = number.ends_with('a');
  if (specific) number.remove_suffix(1);
  int capability = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), capability);
  if (error != std::errc() || end != number.data() + number.size() || number.size() < 2) return invalid();
  const Arch arch{capability / 10, capability % 10, specific};
  if (arch.major < 8)
    return failure(Failure::Kind::unsupported,
                   fmt::format("{}: kernels are written for sm_80 and later", text));
  return arch;
}

std::string Arch::text() const { return fmt::format("sm_{}{}{}", major, minor, specific ? "a" : ""); }

}  // namespace tilewright::cuda
