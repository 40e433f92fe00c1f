// A keyed permutation of any size.
#include <tilewright/base/philox.h>
#include <tilewright/nn/permutation.h>

#include <fmt/format.h>

namespace tilewright::nn {

namespace {

// Four make a network of random functions as good as a random permutation (Luby and Rackoff, 1988); where
// halves have few bits more are needed, and a row's place takes a microsecond all the same.
constexpr std::uint32_t kRounds = 8;

}  // namespace

Permutation::Permutation(Index size, std::uint64_t seed, std::uint64_t epoch, const Location& where)
    : size_(size), seed_(seed), epoch_(epoch) {
  if (size < 1) throw Error(fmt::format("Permutation: of {} things", size), where);
  while (half_bits_ < 32 && std::uint64_t{1} << (2 * half_bits_) < static_cast<std::uint64_t>(size))
    ++half_bits_;
}

Index Permutation::operator()(Index place, const Location& where) const {
  if (place < 0 || place >= size_)
    throw Error(fmt::format("Permutation: place {} of {}", place, size_), where);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto at = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = at >> half_bits_, right = at & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const auto words =
          philox4x32_10({static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch_),
                         static_cast<std::uint32_t>(epoch_ >> 32)},
                        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
      const std::uint64_t mixed = left ^ (words[0] & mask);
      left = right;
      right = mixed;
    }
    at = left << half_bits_ | right;
  } while (at >= static_cast<std::uint64_t>(size_));
  return static_cast<Index>(at);
}

}  // namespace tilewright::nn
