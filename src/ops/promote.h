// Type promotion, stated once. Operands of different element types meet at the smallest type below that is
// reached from both:
//
//   bool < u8, i8 < i32 < i64 < floats          (u8 with i8 meets at i32)
//
//   | left          | right         | result    |
//   |---------------|---------------|-----------|
//   | integer, bool | float         | the float |
//   | f32           | f64           | f64       |
//   | f16, bf16     | f32, f64      | the wider |
//   | f16           | bf16          | f32       |
//   | f8e4m3        | f8e5m2        | f32       |
//   | an 8-bit float| another float | the other |
//
// Weak scalars (literals of the host language) take the tensor's type; a real literal with an integer or bool
// tensor gives f32, an integer literal with a bool tensor gives i32. True division and transcendental
// functions of integers give f32. Arithmetic on bools happens in i32. Two literals, between which where()
// chooses, give f32 when one is real, or f64 when one is beyond f32's range; else i32, or i64 when one of
// them does not fit i32.
#pragma once

#include <tilewright/base/dtype.h>

namespace tilewright::ops {

constexpr int integer_rank(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return 0;
    case DType::u8:
    case DType::i8:
      return 1;
    case DType::i32:
      return 2;
    case DType::i64:
      return 3;
    default:
      return -1;  // a float
  }
}

constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  const int rank_a = integer_rank(a);
  const int rank_b = integer_rank(b);
  if (rank_a >= 0 && rank_b >= 0) {
    if (rank_a == rank_b) return DType::i32;  // u8 with i8
    return rank_a > rank_b ? a : b;
  }
  if (rank_a >= 0) return b;
  if (rank_b >= 0) return a;
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  if (a == DType::f32 || b == DType::f32) return DType::f32;
  if (is_f8(a) && is_f8(b)) return DType::f32;
  if (is_f8(a)) return b;
  if (is_f8(b)) return a;
  return DType::f32;  // f16 with bf16
}

// The type in which +, -, * happen.
constexpr DType arithmetic_type(DType dtype) { return dtype == DType::boolean ? DType::i32 : dtype; }

// The type in which division and transcendental functions happen.
constexpr DType float_type(DType dtype) { return integer_rank(dtype) >= 0 ? DType::f32 : dtype; }

// The type that a literal takes beside a tensor.
constexpr DType weak_type(DType tensor, bool literal_is_real) {
  if (literal_is_real) return float_type(tensor);
  return arithmetic_type(tensor);
}

// The type of sum and prod: integers and bool are counted in i64.
constexpr DType sum_type(DType dtype) { return integer_rank(dtype) >= 0 ? DType::i64 : dtype; }

}  // namespace tilewright::ops
