// How each primitive, cast and monoid is written in C++, the same for scalars and for vectors.
#pragma once

#include "backends/cpu/text/kernel_text.h"

#include <string>
#include <vector>

namespace tilewright::cpu {

enum class Form : unsigned char { scalar, vector };

// One operand: its text and whether that is a scalar (which an operator spreads over the lanes by itself).
struct Term {
  std::string text;
  DType dtype = DType::f32;
  Form form = Form::scalar;
  bool is_simple = true;                              // a name, a literal or a call: needs no parentheses
  std::optional<tile::Number> number = std::nullopt;  // whose literal the text is
};
// An integer's.
Amount amount_of(const Term& term);

// A scalar as a vector.
std::string as_vector(KernelText& k, const Term& term);

// `form` is vector when some operand is one.
Term apply_text(KernelText& k, const tile::Op& op, const std::vector<Term>& operands);
Term cast_text(KernelText& k, DType to, const Term& operand);

// What a monoid starts from and how it combines two values; not argmax and argmin.
tile::Number identity_of(tile::Monoid monoid, DType dtype);
std::string identity_text(tile::Monoid monoid, DType dtype);
std::string combine_text(tile::Monoid monoid, const std::string& a, const std::string& b);
// All lanes of a vector: "reduce_sum(x)".
std::string across_lanes_text(KernelText& k, tile::Monoid monoid, const std::string& vector);

}  // namespace tilewright::cpu
