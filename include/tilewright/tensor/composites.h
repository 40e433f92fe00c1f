// Functions that are written in other functions of tensors: each is declared and defined here, in one place.
// Its gradient and its kernels follow from what it is written in. It runs, and is recorded, as one operation,
// and a mistake is reported in its name, on the user's line.
#pragma once

#include <tilewright/tensor/composed.h>

#pragma GCC visibility push(default)
namespace tilewright {

#define TW_HERE const Location& where = Location::current()

// The standard deviation over `axes` (empty: all): the root of var(), which divides by count - ddof. x's
// type; integers give f32. Where it is 0 so is the gradient, as PyTorch's; of equal elements it is 0 but for
// the rounding of their mean.
inline Tensor std(const Tensor& x, const Axes& axes = {}, Index ddof = 0, Keep keep = Keep::no, TW_HERE) {
  return detail::composed("std", {x}, where, [&](const auto& in) {
    const Tensor wide = cast(in[0], detail::wide_type(in[0]));
    return cast(detail::root(var(wide, axes, ddof, keep)), detail::statistic_type(in[0]));
  });
}

// The Euclidean norm over `axes` (empty: all), √Σx², squared and summed in f32 (f64 for f64 and i64). x's
// type; integers give f32. Where all elements are 0 the gradient is 0, as PyTorch's.
inline Tensor norm(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no, TW_HERE) {
  return detail::composed("norm", {x}, where, [&](const auto& in) {
    const Tensor wide = cast(in[0], detail::wide_type(in[0]));
    return cast(detail::root(sum(wide * wide, axes, keep)), detail::statistic_type(in[0]));
  });
}

// flatten() of all axes, as NumPy calls it.
inline Tensor ravel(const Tensor& x, TW_HERE) {
  return detail::alias("ravel", [&] { return flatten(x, 0, -1, where); });
}

// The Array API's name of transpose(); two more follow.
inline Tensor permute_dims(const Tensor& x, const std::vector<Index>& axes, TW_HERE) {
  return detail::alias("permute_dims", [&] { return transpose(x, axes, where); });
}
// unsqueeze(): an axis of extent 1 at this place.
inline Tensor expand_dims(const Tensor& x, Index axis, TW_HERE) {
  return detail::alias("expand_dims", [&] { return unsqueeze(x, axis, where); });
}
// clamp(): low where x is below it, high where it is above.
inline Tensor clip(const Tensor& x, double low, double high, TW_HERE) {
  return detail::alias("clip", [&] { return clamp(x, low, high, where); });
}

#undef TW_HERE

}  // namespace tilewright
#pragma GCC visibility pop
