// The generator, and sizes as they come in programs.
#include "sweep/draw.h"

#include <tilewright/base/hash.h>
#include <tilewright/base/philox.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tilewright::sweep {

Draw::Draw(std::string_view stream, std::uint64_t seed) : key_(Hasher().add(stream).add(seed).digest().low) {}

std::uint32_t Draw::word() {
  if (used_ == 4) {
    const auto block = philox4x32(key_, counter_++);
    std::copy(block.begin(), block.end(), std::begin(words_));
    used_ = 0;
  }
  return words_[used_++];
}

double Draw::unit() { return uniform_f32(word()); }

Index Draw::integer(Index least, Index most) {
  const auto count = static_cast<double>(most - least + 1);
  return std::min(most, least + static_cast<Index>(unit() * count));
}

double Draw::log_uniform(double least, double most) {
  const double octaves = std::log2(most / least) * unit();
  const double whole = std::floor(octaves);
  return std::min(most, least * std::ldexp(1 + (octaves - whole), static_cast<int>(whole)));
}

namespace {

bool is_prime(Index n) {
  for (Index d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

Index rounded(double about, Index to) {
  return std::max(to, Index{std::lround(about / static_cast<double>(to))} * to);
}

}  // namespace

Index Draw::extent(double about) {
  enum class Kind { power, eights, any, prime };
  const Kind kind =
      weighted<Kind>({{Kind::power, 0.35}, {Kind::eights, 0.3}, {Kind::any, 0.2}, {Kind::prime, 0.15}});
  const auto any = std::max(Index{1}, Index{std::lround(about)});
  if (any <= 2) return any;
  switch (kind) {
    case Kind::power: {
      Index power = 1;
      while (static_cast<double>(power) * 1.414 < about) power *= 2;
      return power;
    }
    case Kind::eights:
      return any < 8 ? any : rounded(about, any < 512 ? 8 : 64);
    case Kind::any:
      return any;
    case Kind::prime: {
      Index prime = any;
      while (!is_prime(prime)) ++prime;
      return prime;
    }
  }
  return any;
}

Shape Draw::shape(double elements, int rank) {
  std::vector<double> weights;
  double all = 0;
  for (int i = 0; i < rank; ++i) all += weights.emplace_back(0.25 + unit());
  std::vector<Index> extents;
  double left = std::max(1.0, elements), weight_left = all;
  for (int i = 0; i < rank; ++i) {
    extents.push_back(extent(std::pow(left, weights[static_cast<std::size_t>(i)] / weight_left)));
    left = std::max(1.0, left / static_cast<double>(extents.back()));
    weight_left -= weights[static_cast<std::size_t>(i)];
  }
  return Shape(extents);
}

}  // namespace tilewright::sweep
