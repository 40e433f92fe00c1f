// Random numbers, and lists of them.
#include "support/choices.h"

namespace tilewright::test {

namespace {

// The middle of fraction(), in steps of 2^-53, is simplest, as intervals have 0 there more often than at an
// end.
constexpr std::uint64_t kMiddle = std::uint64_t{1} << 52;
constexpr double kSteps = 0x1p53;

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::size_t Random::category(std::span<const double> shares) {
  const double dice = fraction();
  std::size_t i = 0;
  while (i < shares.size() && dice >= shares[i]) ++i;
  return i;
}

double ListedChoices::fraction() {
  const std::uint64_t in_range = next() % (2 * kMiddle);
  return static_cast<double>(in_range ^ kMiddle) / kSteps;
}

// What cannot be otherwise has one answer.
bool ListedChoices::chance(double p) {
  const bool yes = next() != 0;
  return p >= 1 || (yes && p > 0);
}

bool ListedChoices::another(Index done, Index wanted) {
  const bool more = next() != 0;
  return more && done < wanted;
}

Index RecordedChoices::below(Index n) {
  return static_cast<Index>(record(static_cast<std::uint64_t>(source_.below(n))));
}

double RecordedChoices::fraction() {
  const double value = source_.fraction();
  record(static_cast<std::uint64_t>(value * kSteps) ^ kMiddle);
  return value;
}

Numbers RecordedChoices::numbers() const {
  Numbers out = numbers_;
  while (!out.empty() && out.back() == 0) out.pop_back();
  return out;
}

}  // namespace tilewright::test
