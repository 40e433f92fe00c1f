// What the optimizers' rules share.
#pragma once

#include <tilewright/nn/optimizer.h>

namespace tilewright::nn {

using detail::SlotType;
using detail::UpdateRule;

// a + (b - a) · share.
inline Tensor toward(const Tensor& a, const Tensor& b, double share) { return a + (b - a) * share; }
// The value with its decay beside the gradient.
inline Tensor decayed(const UpdateRule::Step& step, double weight_decay, const ParameterFilter& filter) {
  if (weight_decay == 0 || !filter(step.parameter)) return step.value;
  return step.value * (1.0 - step.rate * weight_decay);
}

}  // namespace tilewright::nn
