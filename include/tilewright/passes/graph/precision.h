// Precision: the type in which a compiled program multiplies what was written in f32.
#pragma once

#include <optional>
#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright {

// The policy of a program for its products of f32: matmuls, and what is made of them (attention, einsum,
// products of groups, losses of logits), forward and in gradients. Everything else (sums, softmax, norms,
// losses, exponentials, optimizers) stays in the type in which it is written, and so do inputs, outputs and
// products of other types.
enum class Precision {
  f32,   // as written
  tf32,  // operands may lose all but 10 bits of their mantissa, where the device multiplies such faster
  bf16,  // operands are rounded to bf16, sums are f32
  f16,   // operands are rounded to f16, sums are f32; trainings scale their loss (nn/loss_scale.h)
  // Products of weights with 8-bit floats: operands are scaled by their largest absolute value of now
  // (current scaling), rounded, multiplied with sums of f32, and the scales are multiplied into the result. A
  // weight is an argument of the program; its gradient's two products are meant, too. All else is as under
  // bf16: attention, logits whose loss names their type (linear_cross_entropy), embeddings and what is tied
  // to them, products of groups. An infinity or a NaN in an operand makes all results NaN that share its
  // scale. Devices without matrix units for 8 bits convert, and gain nothing.
  fp8,        // a scale for each tensor; values are f8e4m3, gradients f8e5m2 (arXiv 2209.05433)
  fp8_block,  // a scale for each 1 x 128 of what is multiplied with a weight along the depth, and for 128 x
              // 128 of the weight; f8e4m3 (arXiv 2412.19437)
};
inline constexpr Precision kAllPrecisions[] = {Precision::f32, Precision::tf32, Precision::bf16,
                                               Precision::f16, Precision::fp8,  Precision::fp8_block};
// Whether products of weights are multiplied in 8 bits.
constexpr bool is_fp8(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp8_block;
}

// "f32", "tf32", "bf16", "f16", "fp8", "fp8-block"; "?" of a value that is none of them.
std::string_view name(Precision precision);
// The precision of that name; nothing where there is none.
std::optional<Precision> parse_precision(std::string_view text);

}  // namespace tilewright
#pragma GCC visibility pop
