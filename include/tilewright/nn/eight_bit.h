// Tensors kept in 8 bits by blocks: what an optimizer, or a sum of gradients, remembers in a byte a number.
#pragma once

#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/tree.h>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// Block-wise quantization (T. Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv
// 2110.02861): each block of 256 elements, as they follow one another in the tensor, has a scale of its own,
// f32, its largest absolute value over f8e4m3's largest number. The code is dynamic, not linear: f8e4m3 has 4
// bits of exponent, so that a number 200,000 times smaller than its block's largest is not yet 0. That is a
// byte and 1/64 an element.
struct EightBit {
  Tensor codes;   // f8e4m3, of the tensor's shape
  Tensor scales;  // f32[blocks]
  TILEWRIGHT_FIELDS(codes, scales)
};
inline constexpr Index kEightBitBlock = 256;

// The tensor in 8 bits, each element rounded to the nearest code: off by at most 2⁻⁴ of itself, or by
// 2⁻¹⁰ / 448 of its block's largest, or of 2⁻¹⁰⁰ where that is less. An infinity or a NaN makes all of its
// block NaN. Throws Error on what is no float.
EightBit to_eight_bit(const Tensor& x, const Location& where = Location::current());
// The same rounded stochastically: to one of the two codes about it, with the probabilities of which it is
// the mean; the same seed (i64[]) rounds alike. So an average that moves by less than a code's distance is
// moved all the same, in the mean.
EightBit to_eight_bit(const Tensor& x, const Tensor& seed, const Location& where = Location::current());
// The tensor again, f32, of the codes' shape. Throws Error where the parts are not those of one tensor.
Tensor from_eight_bit(const EightBit& x, const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
