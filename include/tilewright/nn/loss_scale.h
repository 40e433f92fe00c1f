// Dynamic loss scaling (Micikevicius et al., arXiv 1710.03740) for training in f16, whose least number is
// 6e-8: gradients are those of the loss times a scale, and are divided by it in f32. A step in which one is
// no number or infinite is left out, and the scale shrinks; after many good steps it grows.
#pragma once

#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/tree.h>

#include <utility>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// The scale and the good steps since it last changed, both f32[].
struct LossScale {
  Tensor scale, good_steps;
  TILEWRIGHT_FIELDS(scale, good_steps)
};

struct LossScaleOptions {
  double first = 65536;
  double growth = 2,
         backoff = 0.5;  // what it is multiplied by, after `interval` good steps and after a bad one
  Index interval = 2000;
};

// The scale before the first step. Throws Error on options that are none: a first scale that is no number
// above 0, growth below 1, a backoff that is not between 0 and 1, an interval below 1.
LossScale make_loss_scale(Context& ctx, const LossScaleOptions& options = {},
                          const Location& where = Location::current());

// Whether all elements of all tensors are finite: bool[].
Tensor all_finite(const std::vector<Tensor>& tensors, const Location& where = Location::current());

// The gradient of a scaled loss without the scale, and whether it is finite: bool[].
template <class P>
  requires tilewright::detail::IsTree<P>
std::pair<P, Tensor> unscaled(const P& gradient, const LossScale& scale,
                              const Location& where = Location::current()) {
  const Tensor finite = all_finite(tensors_of(gradient), where);
  return {map_tensors([&](const Tensor& g) { return cast(g, DType::f32, where) / scale.scale; }, gradient),
          finite};
}

// `taken` where the condition, bool[], holds, `kept` where not: a step that may have to be left out.
template <class P>
  requires tilewright::detail::IsTree<P>
P choose(const Tensor& condition, const P& taken, const P& kept,
         const Location& where_ = Location::current()) {
  return map_tensors([&](const Tensor& a, const Tensor& b) { return where(condition, a, b, where_); }, taken,
                     kept);
}

// The scale after a step whose gradient was finite, or was not.
LossScale next_loss_scale(const LossScale& scale, const Tensor& finite, const LossScaleOptions& options = {},
                          const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
