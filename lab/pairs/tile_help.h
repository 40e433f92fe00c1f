// What hand-written kernels of several pairs share: narrow types are computed in f32, rows are loaded whole,
// a kernel's views are the pair's inputs and then its outputs.
#pragma once

#include <tilewright/tile/builder.h>

#include <memory>
#include <vector>

#include "pairs/tensor_pair.h"

namespace tilewright::lab {

inline tile::Value widen(tile::Builder& k, const tile::Value& v) {
  return is_narrow_float(v.dtype()) ? k.cast(v, DType::f32) : v;
}
inline tile::Value narrow(tile::Builder& k, const tile::Value& v, DType dtype) {
  return v.dtype() == dtype ? v : k.cast(v, dtype);
}

// A row of a matrix, and a vector, of `columns` elements.
inline tile::Value load_row(tile::Builder& k, tile::View matrix, const tile::Value& row, Index columns) {
  return widen(k, k.load(matrix, {row, 0}, {.shape = {columns}}));
}
inline tile::Value load_vector(tile::Builder& k, tile::View vector, Index columns) {
  return widen(k, k.load(vector, {0}, {.shape = {columns}}));
}

// t (columns) less its mean, over the root of its variance + 1e-5, as layer norm takes it.
inline tile::Value standardised(tile::Builder& k, const tile::Value& t, Index columns) {
  const double share = 1.0 / static_cast<double>(columns);
  const auto centered = t - k.reduce(tile::Monoid::sum, t, 0) * share;
  const auto variance = k.reduce(tile::Monoid::sum, centered * centered, 0) * share;
  return centered * tile::rsqrt(variance + 1e-5);
}

// Launches a kernel whose views are the inputs in their order, then the outputs.
inline TileLaunch launch_of(tile::Kernel kernel) {
  auto function = std::make_shared<TileFunction>(std::move(kernel));
  return [function](const std::vector<Tensor>& out, const std::vector<Tensor>& in) {
    std::vector<TileArg> views(in.begin(), in.end());
    for (const Tensor& t : out) views.push_back(into(t));
    (*function)(views);
  };
}

}  // namespace tilewright::lab
