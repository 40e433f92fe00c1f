// Blocks with scales, and the two codes about a number.
#include "nn/eight_bit.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <functional>

namespace tilewright::nn {

namespace {

constexpr DType kCode = DType::f8e4m3;
// A block whose largest is below this has the scale of this: zeros stay zeros, and a reciprocal finite.
constexpr double kLeastAmax = 0x1p-100;

Index blocks_of(Index size) { return ceil_div(size, kEightBitBlock); }

// (blocks, 256), filled up with zeros; and back, in a shape.
Tensor in_blocks(const Tensor& x, const Location& where) {
  const Index blocks = blocks_of(x.size()), fill = blocks * kEightBitBlock - x.size();
  const Tensor flat = reshape(x, {x.size()}, where);
  return reshape(fill == 0 ? flat : pad(flat, 0, 0, fill, 0, where), {blocks, kEightBitBlock}, where);
}
Tensor from_blocks(const Tensor& blocks, const Shape& shape, const Location& where) {
  const Tensor flat = reshape(blocks, {blocks.size()}, where);
  return reshape(blocks.size() == shape.size() ? flat : slice(flat, 0, {0, shape.size()}, where), shape,
                 where);
}

// Numbers in units of their block's scale, as f32 and as codes.
using Round = std::function<Tensor(const Tensor& x)>;

EightBit rounded(const Tensor& x, const Round& round, const Location& where) {
  const Tensor values = in_blocks(cast(x, DType::f32, where), where);
  const Tensor most = max(abs(values, where), {1}, Keep::no, where);
  const Tensor scales = maximum({most, where}, {kLeastAmax, where}, where) * (1 / max_finite(kCode));
  const Tensor codes = round(values * unsqueeze(reciprocal(scales, where), 1, where));
  return {from_blocks(codes, x.shape(), where), scales};
}

// The code next to `near` on the side of x. Codes are apart by an eighth of their power of two, and numbers
// below the least normal one by the least subnormal one; seven tenths of that, or of an eighth of the number,
// which is up to twice that, are rounded to the next code, and never to the one behind it.
Tensor beside(const Tensor& near, const Tensor& rest) {
  const Tensor step = maximum(abs(near) * (0.7 / 8), 0.7 * min_subnormal(kCode));
  return cast(cast(near + where(rest > 0.f, step, -step), kCode), DType::f32);
}

// One of the two codes about x, such that f(code) has the mean f(x).
template <class F>
Tensor by_chance(const Tensor& x, const Tensor& seed, const F& f, const Location& where) {
  const Tensor near = cast(cast(x, kCode), DType::f32), other = beside(near, x - near);
  const Tensor chance = (f(x) - f(near)) / (f(other) - f(near));
  return cast(tilewright::where(uniform(seed, x.shape(), where) < chance, other, near), kCode);
}

void check(const Tensor& x, const Location& where) {
  if (!is_float(x.dtype(where)))
    throw Error(fmt::format("to_eight_bit: {}{}; it takes floats", name(x.dtype()), to_string(x.shape())),
                where);
}

}  // namespace

EightBit to_eight_bit(const Tensor& x, const Location& where) {
  check(x, where);
  return rounded(x, [](const Tensor& v) { return cast(v, kCode); }, where);
}

EightBit to_eight_bit(const Tensor& x, const Tensor& seed, const Location& where) {
  check(x, where);
  const auto same = [](const Tensor& v) { return v; };
  return rounded(x, [&](const Tensor& v) { return by_chance(v, seed, same, where); }, where);
}

Tensor from_eight_bit(const EightBit& x, const Location& where) {
  if (x.codes.dtype(where) != kCode || x.scales.dtype(where) != DType::f32 ||
      x.scales.shape() != Shape{blocks_of(x.codes.size())})
    throw Error(
        fmt::format("from_eight_bit: codes {}{} with scales {}{}; they are f8e4m3, and f32[{}] for each {}",
                    name(x.codes.dtype()), to_string(x.codes.shape()), name(x.scales.dtype()),
                    to_string(x.scales.shape()), blocks_of(x.codes.size()), kEightBitBlock),
        where);
  const Tensor values = cast(in_blocks(x.codes, where), DType::f32, where);
  return from_blocks(values * unsqueeze(x.scales, 1, where), x.codes.shape(), where);
}

EightBit squares_to_eight_bit(const Tensor& x, const Tensor& seed, const Location& where) {
  const auto squared = [](const Tensor& v) { return square(v); };
  return rounded(sqrt(x, where), [&](const Tensor& v) { return by_chance(v, seed, squared, where); }, where);
}

Tensor squares_from_eight_bit(const EightBit& x, const Location& where) {
  const Tensor values = cast(in_blocks(x.codes, where), DType::f32, where);
  const Tensor roots = maximum(values, min_subnormal(kCode) / 2) * unsqueeze(x.scales, 1, where);
  return from_blocks(square(roots), x.codes.shape(), where);
}

}  // namespace tilewright::nn
