// Error bounds of compute ops.
#include <algorithm>
#include <cmath>

#include "backends/reference/bounds_context.h"

namespace tilewright::reference {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;

namespace {

// --- per element

// Whether y is what every correctly rounding implementation gives for equal operands.
bool is_exact(Prim prim, DType dtype, double y, const double value[3]) {
  if (dtype != DType::f64) return round_to(dtype, y) == y;
  // The rounding of an f64 product disappears where a backend contracts it with the sum that follows.
  return prim != Prim::mul || std::fma(value[0], value[1], -y) == 0;
}

// What the op itself may get wrong, in absolute terms.
double own_error(Prim prim, DType dtype, double y, const double value[3], double moved) {
  switch (prim) {
    case Prim::min:
    case Prim::max:
    case Prim::neg:
    case Prim::abs:
    case Prim::sign:
    case Prim::floor:
    case Prim::ceil:
    case Prim::round:
    case Prim::trunc:
      return 0;
    default:
      break;
  }
  const double ulp = info(prim).ulp;
  if (ulp <= 0.5 && moved == 0 && is_exact(prim, dtype, y, value)) return 0;
  // In f64 the value here carries a rounding of its own.
  const double here = dtype == DType::f64 ? 1 : 0;
  return (ulp + here) * 2 * half_spacing(dtype, y);
}

void apply_float(const Context& c) {
  Tile& result = c.result();
  const DType dtype = c.type(0).dtype;
  const int arity = info(c.op.prim).arity;
  const Tile* operands[3] = {};
  for (int i = 0; i < arity; ++i) operands[i] = &c.operand(static_cast<std::size_t>(i));
  for (std::size_t n = 0; n < result.f.size(); ++n) {
    double value[3] = {}, error[3] = {};
    for (int i = 0; i < arity; ++i) {
      value[i] = operands[i]->f[n];
      error[i] = operands[i]->error[n];
    }
    double& y = result.f[n];
    const double moved = spread(c.op.prim, y, value, error, arity);
    double own =
        c.model.scale * std::max(own_error(c.op.prim, dtype, y, value, moved), c.short_form * std::abs(y));
    if (c.model.flush_subnormals && y != 0 && std::abs(y) < min_normal(dtype)) own += min_normal(dtype);
    result.error[n] = std::isfinite(y) ? settle(dtype, y, moved + own) : moved == 0 ? 0 : kInfinity;
  }
}

void apply_test(const Context& c) {
  Tile& result = c.result();
  const Tile &a = c.operand(0), &b = c.operand(c.op.operands.size() - 1);
  for (std::size_t n = 0; n < result.i.size(); ++n) {
    const double slack = a.error[n] + b.error[n];
    const bool close = std::abs(a.f[n] - b.f[n]) <= slack && c.op.prim != Prim::isnan;
    result.error[n] = slack > 0 && (close || !std::isfinite(slack)) ? kUndecidedBool : 0;
  }
}

void apply_whole(const Context& c) {
  Tile& result = c.result();
  const Tile &a = c.operand(0), &b = c.operand(c.op.operands.size() - 1);
  const DType dtype = c.result_type().dtype;
  for (std::size_t n = 0; n < result.i.size(); ++n) {
    bool decided = a.error[n] == 0 && b.error[n] == 0;
    // A bool that alone decides the result.
    if (is_bool(c.type(0).dtype) && c.op.prim == Prim::bit_and)
      decided |= (a.error[n] == 0 && a.i[n] == 0) || (b.error[n] == 0 && b.i[n] == 0);
    if (is_bool(c.type(0).dtype) && c.op.prim == Prim::bit_or)
      decided |= (a.error[n] == 0 && a.i[n] == 1) || (b.error[n] == 0 && b.i[n] == 1);
    result.error[n] = decided ? 0 : undecided(dtype);
  }
}

void apply_select(const Context& c) {
  Tile& result = c.result();
  const Tile &condition = c.operand(0), &a = c.operand(1), &b = c.operand(2);
  const bool is_real = is_float(c.result_type().dtype);
  for (std::size_t n = 0; n < result.error.size(); ++n) {
    const bool first = condition.i[n] != 0;
    const double chosen = first ? a.error[n] : b.error[n], refused = first ? b.error[n] : a.error[n];
    result.error[n] = chosen;
    if (condition.error[n] == 0) continue;
    if (!is_real) {
      const bool same = a.i[n] == b.i[n] && chosen == 0 && refused == 0;
      result.error[n] = same ? 0 : undecided(c.result_type().dtype);
    } else {
      const double apart = a.f[n] == b.f[n] ? 0 : std::abs(a.f[n] - b.f[n]);
      result.error[n] = std::isnan(apart) ? kInfinity : std::max(chosen, apart + refused);
    }
  }
}

void cast(const Context& c) {
  Tile& result = c.result();
  const Tile& from = c.operand(0);
  const DType source = c.type(0).dtype, target = c.result_type().dtype;
  for (std::size_t n = 0; n < result.error.size(); ++n) {
    const double error = from.error[n];
    result.error[n] = error;
    if (error == 0) continue;
    if (!is_float(source)) {
      const bool maybe_one = is_bool(source) && is_float(target);
      result.error[n] = maybe_one ? 1 : undecided(target);
    } else if (!std::isfinite(error)) {
      result.error[n] = undecided(target);
    } else if (is_float(target)) {
      double worst = 0;
      for (double moved : {from.f[n] - error, from.f[n] + error}) {
        const double rounded = round_to(target, moved);
        worst = std::max(worst, rounded == result.f[n] ? 0 : std::abs(rounded - result.f[n]));
      }
      result.error[n] = std::isnan(worst) ? kInfinity : worst;
    } else {
      const bool same = float_to_int(target, from.f[n] - error) == float_to_int(target, from.f[n] + error);
      const bool zero_between = is_bool(target) && std::abs(from.f[n]) <= error;
      result.error[n] = same && !zero_between ? 0 : undecided(target);
    }
  }
}

// --- dot

void dot(const Context& c) {
  const Tile &a = c.operand(0), &b = c.operand(1), &acc = c.operand(2);
  Tile& result = c.result();
  const auto inner = static_cast<std::size_t>(c.type(0).shape[1]),
             columns = static_cast<std::size_t>(c.type(1).shape[1]);
  const DType dtype = c.result_type().dtype;
  if (!is_float(dtype)) {
    const auto any = [](const Tile& t) {
      return std::any_of(t.error.begin(), t.error.end(), [](double e) { return e != 0; });
    };
    const bool exact = !any(a) && !any(b) && !any(acc);
    std::fill(result.error.begin(), result.error.end(), exact ? 0 : kInfinity);
    return;
  }
  // Matrix units truncate instead of rounding to nearest while they add up products of narrow types.
  // In f64 the reference rounds too.
  const bool twice = is_narrow_float(c.type(0).dtype) || dtype == DType::f64;
  const bool tf32 = c.op.precision == tile::DotPrecision::tf32;
  const double each = unit_roundoff(dtype) * (twice || tf32 ? 2 : 1);
  // 10 bits of each operand's mantissa, cut off at worst; x (1 + e) y (1 + e) - x y.
  constexpr double kCut = 0x1p-10;
  const double operands = tf32 ? (2 + kCut) * kCut * c.model.scale : 0;
  for (std::size_t n = 0; n < result.f.size(); ++n) {
    const std::size_t row = n / columns, column = n % columns;
    double moved = acc.error[n], magnitude = std::abs(acc.f[n]);
    for (std::size_t k = 0; k < inner; ++k) {
      const std::size_t i = row * inner + k, j = k * columns + column;
      const double x = std::abs(a.f[i]), y = std::abs(b.f[j]);
      magnitude += x * y;
      moved += x * b.error[j] + y * a.error[i] + a.error[i] * b.error[j] + operands * x * y;
    }
    double& y = result.f[n];
    if (!std::isfinite(moved)) {
      result.error[n] = kInfinity;
    } else if (!std::isfinite(y)) {
      result.error[n] = moved == 0 ? 0 : kInfinity;
    } else if (magnitude + moved > max_finite(dtype)) {
      result.error[n] = kInfinity;
    } else {
      const double roundings = static_cast<double>(inner + 1) * each * c.model.scale;
      result.error[n] = settle(dtype, y, moved + roundings * (magnitude + moved));
    }
  }
}

// --- moves

void move(const Context& c) {
  const std::vector<double>& from = c.operand(0).error;
  std::vector<double>& to = c.result().error;
  if (c.op.kind == OpKind::reshape) {
    to = from;
  } else if (c.op.kind == OpKind::broadcast) {
    const BroadcastWalk walk = walk_broadcast(c.type(0), c.result_type());
    for (Index r = 0; r < walk.rows; ++r)
      for (Index k = 0; k < walk.columns; ++k)
        to[static_cast<std::size_t>(r * walk.columns + k)] =
            from[static_cast<std::size_t>(r * walk.row_step + k * walk.column_step)];
  } else {
    const auto rows = static_cast<std::size_t>(c.type(0).shape[0]),
               columns = static_cast<std::size_t>(c.type(0).shape[1]);
    for (std::size_t n = 0; n < to.size(); ++n) to[n % columns * rows + n / columns] = from[n];
  }
}

}  // namespace

void propagate(const Kernel& kernel, const Op& op, const ErrorModel& model, double short_form,
               Values& values) {
  const Context c{kernel, op, model, short_form, values};
  c.result().error.assign(static_cast<std::size_t>(c.result_type().size()), 0);
  switch (op.kind) {
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::transpose:
      return move(c);
    case OpKind::cast:
      return cast(c);
    case OpKind::apply:
      if (op.prim == Prim::select) return apply_select(c);
      if (!is_float(c.type(0).dtype)) return apply_whole(c);
      return info(op.prim).to_bool ? apply_test(c) : apply_float(c);
    case OpKind::reduce:
    case OpKind::scan:
    case OpKind::argsort:
      return propagate_along_axis(c);
    case OpKind::dot:
      return dot(c);
    case OpKind::random:
      for (std::size_t n = 0; n < c.result().error.size(); ++n)
        if (c.operand(0).error[0] != 0 || c.operand(1).error[n] != 0) c.result().error[n] = kInfinity;
      return;
    default:
      return;  // constants, arange: exact
  }
}

}  // namespace tilewright::reference
