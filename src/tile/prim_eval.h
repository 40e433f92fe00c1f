// What each primitive means: in float64 for floats of any type, in wrapped int64 for integers and bool.
// The reference interpreter runs on these; folding and tests use them too.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/tile/prim.h>

#include <cstddef>
#include <cstdint>

namespace tilewright::tile {

// One float result (not comparisons, isnan, select). Operands past the arity are ignored.
double eval_f64(Prim prim, double a, double b = 0, double c = 0);
// One result of integers or bool of `dtype` (not select), wrapped to it; comparisons give 0 or 1. Operands
// are values of `dtype`.
std::int64_t eval_i64(Prim prim, DType dtype, std::int64_t a, std::int64_t b = 0);
// Comparisons and isnan of floats.
bool eval_test(Prim prim, double a, double b = 0);

// The same over arrays of `count`; unused operands may be null, `out` may be one of the operands.
void eval_f64(Prim prim, const double* a, const double* b, const double* c, double* out, std::size_t count);
void eval_i64(Prim prim, DType dtype, const std::int64_t* a, const std::int64_t* b, std::int64_t* out,
              std::size_t count);
void eval_test(Prim prim, const double* a, const double* b, std::int64_t* out, std::size_t count);

}  // namespace tilewright::tile
