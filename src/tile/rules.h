// The rules that the builder, the verifier and the parser share: which types an op takes, which names and
// literals are legal, which fields of Op an op kind uses.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <string_view>

namespace tilewright::tile {

// Whether `prim` computes on `dtype` (for select: on its last two operands).
bool accepts(Prim prim, DType dtype);
bool reduces(Monoid monoid, DType dtype);
bool scans(Monoid monoid, DType dtype);
bool sorts(DType dtype);
DType reduce_dtype(Monoid monoid, DType dtype);  // i64 for argmax and argmin
// Operands of a dot: of one type, or 8-bit floats of two.
bool dot_types_meet(DType a, DType b);
// The type a dot of `dtype` accumulates in: f32 (f64 for f64), i32 (i64 for i64); empty for bool.
std::optional<DType> dot_accumulator(DType dtype);
bool adds_atomically(DType dtype);  // f32, f64, i32, i64

// Products that `rounded` may be said of, and what they would be contracted with.
bool is_product(const Op& op, DType dtype);
bool is_sum(const Op& op);

// Letters, digits, '_' and '.', not starting with a digit or '.'.
bool is_identifier(std::string_view text);

// `value` as a literal of `dtype`: rounded (floats) or wrapped (integers); empty when a finite value is too
// large for a float type or infinity has no code in it.
std::optional<Number> float_literal(DType dtype, double value);
Number int_literal(DType dtype, Index value);
// A literal is stored as the element it stands for: floats representable, integers wrapped, the other member
// 0.
bool is_canonical(const Number& number, DType dtype);

// The view dims a tile walks when nothing else is said: the last ones.
std::vector<int> default_tile_dims(int view_rank, int tile_rank);

// Which optional fields of Op a kind uses; the others keep their defaults. `number` depends on the op too:
// bounded loads and masked gathers have one.
struct FieldUse {
  bool prim = false, monoid = false, param = false, axis = false, order = false, tile_dims = false,
       bounded = false, masked = false;
  int blocks = 0;
};
FieldUse field_use(OpKind kind);
bool uses_number(const Op& op);

}  // namespace tilewright::tile
