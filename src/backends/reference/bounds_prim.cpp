// Propagation through one primitive: closed forms where the function is not monotone in each operand over a
// small box, else its corners.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/reference/bounds_context.h"
#include "tile/prim_eval.h"

namespace tilewright::reference {

using tile::Prim;

namespace {

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : kInfinity;
}

// The largest change at the corners of the box.
double at_corners(Prim prim, double y, const double value[3], const double error[3], int arity) {
  double worst = 0;
  for (int corner = 0; corner < 1 << arity; ++corner) {
    double moved[3] = {};
    for (int i = 0; i < arity; ++i) moved[i] = value[i] + ((corner >> i & 1) != 0 ? error[i] : -error[i]);
    worst = std::max(worst, distance(y, tile::eval_f64(prim, moved[0], moved[1], moved[2])));
  }
  return worst;
}

bool holds_zero(double value, double error) { return std::abs(value) <= error; }

double spread_of_product(double a, double ea, double b, double eb) {
  return std::abs(a) * eb + std::abs(b) * ea + ea * eb;
}

double spread_of_remainder(double a, double ea, double b, double eb) {
  if (holds_zero(b, eb)) return kInfinity;
  const auto quotient = [](double x, double y) { return std::trunc(x / y); };
  const double q = quotient(a, b);
  for (double x : {a - ea, a + ea})
    for (double y : {b - eb, b + eb})
      if (quotient(x, y) != q) return std::abs(b) + eb;
  return ea + std::abs(q) * eb;
}

}  // namespace

double spread(Prim prim, double y, const double value[3], const double error[3], int arity) {
  const double a = value[0], ea = error[0], b = value[1], eb = arity > 1 ? error[1] : 0;
  const double sum = ea + eb + (arity > 2 ? error[2] : 0);
  if (sum == 0) return 0;
  if (!std::isfinite(sum)) return kInfinity;
  if (!std::isfinite(y)) return at_corners(prim, y, value, error, arity);
  switch (prim) {
    case Prim::add:
    case Prim::sub:
    case Prim::abs:
      return sum;
    case Prim::mul:
      return spread_of_product(a, ea, b, eb);
    case Prim::fma:
      return spread_of_product(a, ea, b, eb) + error[2];
    case Prim::div:
      return holds_zero(b, eb) ? kInfinity : (ea + std::abs(y) * eb) / (std::abs(b) - eb);
    case Prim::reciprocal:
      return holds_zero(a, ea) ? kInfinity : std::abs(y) * ea / (std::abs(a) - ea);
    case Prim::rem:
      return spread_of_remainder(a, ea, b, eb);
    case Prim::sin:
    case Prim::cos:
      return std::min(ea, 2.0);
    case Prim::tan: {
      const auto branch = [](double x) { return std::floor(x * std::numbers::inv_pi + 0.5); };
      return branch(a - ea) != branch(a + ea) ? kInfinity : at_corners(prim, y, value, error, arity);
    }
    case Prim::pow:
      return a - ea <= 0 && ea > 0 ? kInfinity : at_corners(prim, y, value, error, arity);
    case Prim::atan2:
      if (holds_zero(a, ea) && holds_zero(b, eb)) return 2 * std::numbers::pi;
      return at_corners(prim, y, value, error, arity);
    default:
      return at_corners(prim, y, value, error, arity);
  }
}

double half_spacing(DType dtype, double value) {
  if (!is_float(dtype) || !std::isfinite(value)) return 0;
  int exponent = 0;
  std::frexp(std::max(std::abs(value), min_normal(dtype)), &exponent);  // |value| in [2^(e-1), 2^e)
  return std::ldexp(unit_roundoff(dtype), exponent - 1);
}

}  // namespace tilewright::reference
