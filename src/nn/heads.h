// Heads of attention as axes of their own.
#pragma once

#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

namespace tilewright::nn {

// Throws Error in the name of a model's `function` where `heads` heads cannot share the width.
inline void check_heads(const char* function, Index heads, Index width, const Location& where) {
  if (heads < 1 || width % heads != 0)
    throw Error(fmt::format("{}: {} heads do not divide the width {}", function, heads, width), where);
}

// (B, T, heads · D) as (B, heads, T, D), and back.
inline Tensor split_heads(const Tensor& x, Index heads, const Location& where) {
  const Shape& s = x.shape(where);
  return swap_axes(reshape(x, {s[0], s[1], heads, s[2] / heads}, where), 1, 2, where);
}
inline Tensor join_heads(const Tensor& x, const Location& where) {
  const Shape& s = x.shape(where);
  return reshape(swap_axes(x, 1, 2, where), {s[0], s[2], s[1] * s[3]}, where);
}

}  // namespace tilewright::nn
