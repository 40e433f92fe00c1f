// Moments in f32, in 16 bits and in 8.
#include "nn/moment.h"

#include "nn/eight_bit.h"

#include <fmt/format.h>

namespace tilewright::nn {

namespace {

// FNV-1a: parameters of other names are rounded by other random numbers.
Index hash_of(std::string_view name, std::size_t slot) {
  std::uint64_t hash = 0xcbf29ce484222325ULL + slot;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<Index>(hash);
}

}  // namespace

std::vector<SlotType> Moment::types(const NamedTensor& parameter) const {
  const Shape& shape = parameter.tensor.shape();
  if (type_ != DType::f8e4m3) return {{type_, shape}};
  return {{type_, shape}, {DType::f32, Shape{ceil_div(shape.size(), kEightBitBlock)}}};
}

Tensor Moment::read(const std::vector<Tensor>& slots) const {
  if (type_ != DType::f8e4m3) return cast(slots[first_], DType::f32);
  const EightBit kept{.codes = slots[first_], .scales = slots[first_ + 1]};
  return of_ == Of::squares ? squares_from_eight_bit(kept, Location::current()) : from_eight_bit(kept);
}

std::vector<Tensor> Moment::written(const Tensor& value, const UpdateRule::Step& step) const {
  if (type_ != DType::f8e4m3) return {cast(value, type_)};
  // An odd number that spreads neighbouring steps over all 64 bits (Steele et al., SplitMix64).
  constexpr auto kSpread = static_cast<Index>(0x9E3779B97F4A7C15ULL);
  const Tensor seed = cast(step.steps, DType::i64) * kSpread + hash_of(step.parameter.name, first_);
  const EightBit kept =
      of_ == Of::squares ? squares_to_eight_bit(value, seed, Location::current()) : to_eight_bit(value, seed);
  return {kept.codes, kept.scales};
}

void check_moment(std::string_view optimizer, std::string_view called, double beta, DType type,
                  const Location& where) {
  if (type != DType::f32 && type != DType::bf16 && type != DType::f8e4m3)
    throw Error(fmt::format("{}: moments in {}; f32, bf16 and, by blocks, f8e4m3 have the range for them",
                            optimizer, name(type)),
                where);
  if (type == DType::f32) return;
  if (type == DType::f8e4m3) {
    // A stochastic rounding of a root to f8e4m3 changes its square by 7.5 % in the root mean square: codes
    // are apart by 2⁻³ of their power of two, a square by twice that, over √6, over a mean 1.36 in a power of
    // two. An average keeps beta of it, so that those of all steps are beta / √(1 - beta²) times as much:
    // half of which is of a step, 26 % at 0.99, and all of it and more at 0.999.
    constexpr double kMost = 0.99;
    if (beta > kMost)
      throw Error(
          fmt::format("{}: {} is {} and its moment is of 8 bits, whose roundings such an average adds up "
                      "to more than itself: a beta of at most {}, 0.95 say, or that moment in bf16 or f32",
                      optimizer, called, beta, kMost),
          where);
    return;
  }
  // An average of nothing falls by 1 - beta of itself; by less than half a unit of its last digit it stays.
  const double most = 1 - unit_roundoff(type);
  if (beta > most)
    throw Error(fmt::format("{}: {} is {} and moments are bf16, in which an average that moves by {:.2g} of "
                            "itself a step stays where it is: a beta of at most {:.3f}, 0.95 say, or moments "
                            "in f32",
                            optimizer, called, beta, 1 - beta, most),
                where);
}

}  // namespace tilewright::nn
