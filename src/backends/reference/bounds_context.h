// What the error bounds of all compute ops share.
#pragma once

#include <cmath>
#include <limits>

#include "backends/reference/bounds.h"
#include "backends/reference/compute.h"

namespace tilewright::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUndecidedBool = 1;

inline double undecided(DType dtype) { return is_bool(dtype) ? kUndecidedBool : kInfinity; }

// The error of a float result: an overflow that is certain becomes infinity, as it does in the type; one that
// is not, or a value that may be anything, is undecided.
inline double settle(DType dtype, double& y, double error) {
  if (std::isnan(error)) return kInfinity;
  if (!std::isfinite(y) || !std::isfinite(error) || dtype == DType::f64) return error;
  const double limit = max_finite(dtype);
  if (std::abs(y) + error <= limit) return error;
  if (std::abs(y) - error <= limit * (1 + unit_roundoff(dtype))) return kInfinity;
  y = std::copysign(kInfinity, y);
  return 0;
}

// An op whose result is there and whose operands have their errors.
struct Context {
  const tile::Kernel& kernel;
  const tile::Op& op;
  const ErrorModel& model;
  double short_form;  // of the op's primitive: short_forms.h
  Values& values;
  const Tile& operand(std::size_t i) const { return at(values, op.operands[i]); }
  const tile::TileType& type(std::size_t i) const { return kernel.type(op.operands[i]); }
  const tile::TileType& result_type() const { return kernel.type(op.results[0]); }
  Tile& result() const { return at(values, op.results[0]); }
};

void propagate_along_axis(const Context& c);  // reduce, scan and argsort

}  // namespace tilewright::reference
