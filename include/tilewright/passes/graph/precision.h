// Precision: the type in which a compiled program multiplies what was written in f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright {

// The policy of a program for its products of f32: matmuls, and what is made of them (attention, einsum,
// products of groups, losses of logits), forward and in gradients. Everything else (sums, softmax, norms,
// losses, exponentials, optimizers) stays in the type in which it is written, and so do inputs, outputs and
// products of other types.
enum class Precision : std::uint8_t {
  f32,   // as written
  tf32,  // operands may lose all but 10 bits of their mantissa, where the device multiplies such faster
  bf16,  // operands are rounded to bf16, sums are f32
  f16,   // operands are rounded to f16, sums are f32; trainings scale their loss (nn/loss_scale.h)
};
inline constexpr Precision kAllPrecisions[] = {Precision::f32, Precision::tf32, Precision::bf16,
                                               Precision::f16};

// "f32", "tf32", "bf16", "f16"; "?" of a value that is none of them.
std::string_view name(Precision precision);
// The precision of that name; nothing where there is none.
std::optional<Precision> parse_precision(std::string_view text);

}  // namespace tilewright
#pragma GCC visibility pop
