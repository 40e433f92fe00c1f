// Squares in 8 bits: what the moments of an optimizer need beside include/tilewright/nn/eight_bit.h.
#pragma once

#include <tilewright/nn/eight_bit.h>

namespace tilewright::nn {

// Numbers of at least 0 by their roots, so that they may be 5·10¹⁰ times smaller than their block's largest,
// as squares of gradients are; rounded stochastically, with the mean of the squares themselves.
EightBit squares_to_eight_bit(const Tensor& x, const Tensor& seed, const Location& where);
// Those, f32. What was rounded to 0 is read as the square of half the least code: nothing is divided by 0
// that had a gradient.
Tensor squares_from_eight_bit(const EightBit& x, const Location& where);

}  // namespace tilewright::nn
