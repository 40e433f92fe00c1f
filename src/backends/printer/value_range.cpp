// Interval and divisor arithmetic over the tile ops; anything that might wrap becomes unknown.
#include "backends/printer/value_range.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <numeric>

namespace tilewright::printer {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;

namespace {

constexpr Index kMin = std::numeric_limits<Index>::min();
constexpr Index kMax = std::numeric_limits<Index>::max();
// Programs of a launch: one 31-bit grid axis.
constexpr Index kMaxPrograms = (Index{1} << 31) - 1;

// The magnitude; the smallest number has none, but this divides it.
Index divisor_of(Index v) { return v == kMin ? Index{1} << 62 : v < 0 ? -v : v; }

ValueRange exactly(Index v) { return {v, v, divisor_of(v)}; }
ValueRange between(Index low, Index high) { return {low, high, 1}; }

ValueRange join(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::gcd(a.divisor, b.divisor)};
}

// Largest power of two; a divisor that survives wrapping.
Index power_of_two_in(Index divisor) { return divisor == 0 ? Index{1} << 62 : divisor & -divisor; }

ValueRange add(const ValueRange& a, const ValueRange& b) {
  ValueRange r;
  r.divisor = std::gcd(a.divisor, b.divisor);
  if (!a.bounded() || !b.bounded() || __builtin_add_overflow(a.low, b.low, &r.low) ||
      __builtin_add_overflow(a.high, b.high, &r.high))
    return {kMin, kMax, power_of_two_in(r.divisor)};
  return r;
}

ValueRange negate(const ValueRange& a) {
  if (!a.bounded()) return {kMin, kMax, power_of_two_in(a.divisor)};
  return {-a.high, -a.low, a.divisor};
}

ValueRange multiply(const ValueRange& a, const ValueRange& b) {
  ValueRange r;
  Index ends[4];
  bool wraps = !a.bounded() || !b.bounded() || __builtin_mul_overflow(a.divisor, b.divisor, &r.divisor);
  wraps = wraps || __builtin_mul_overflow(a.low, b.low, &ends[0]) ||
          __builtin_mul_overflow(a.low, b.high, &ends[1]) ||
          __builtin_mul_overflow(a.high, b.low, &ends[2]) || __builtin_mul_overflow(a.high, b.high, &ends[3]);
  if (wraps) {
    const Index p = power_of_two_in(a.divisor), q = power_of_two_in(b.divisor);
    return {kMin, kMax, p > (Index{1} << 31) || q > (Index{1} << 31) ? std::max(p, q) : p * q};
  }
  r.low = *std::min_element(ends, ends + 4);
  r.high = *std::max_element(ends, ends + 4);
  return r;
}

// Truncating division by a known positive number.
ValueRange divide(const ValueRange& a, const ValueRange& b) {
  if (b.low != b.high || b.low <= 0 || !a.bounded()) return {};
  const Index d = b.low;
  return {a.low / d, a.high / d, a.divisor % d == 0 ? a.divisor / d : 1};
}

ValueRange remainder(const ValueRange& a, const ValueRange& b) {
  if (b.low != b.high || b.low <= 0) return {};
  const Index d = b.low;
  const ValueRange r{a.low < 0 ? -(d - 1) : 0, d - 1, std::gcd(a.divisor, d)};
  return a.within(0, d - 1) ? a : r;
}

ValueRange of_dtype(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return between(0, 1);
    case DType::u8:
      return between(0, 255);
    case DType::i8:
      return between(-128, 127);
    case DType::i32:
      return between(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    default:
      return {};
  }
}

// A result outside its type wrapped, and only powers of two still divide it.
ValueRange clipped(ValueRange r, DType dtype) {
  const ValueRange type = of_dtype(dtype);
  if (r.within(type.low, type.high)) return r;
  return {type.low, type.high,
          std::gcd(power_of_two_in(r.divisor),
                   Index{1} << (size_bytes(dtype) * 8 - 1 > 62 ? 62 : size_bytes(dtype) * 8 - 1))};
}

class Ranges {
 public:
  explicit Ranges(const Kernel& kernel) : kernel_(kernel), ranges_(kernel.values.size()) {
    for (std::size_t v = 0; v < ranges_.size(); ++v) ranges_[v] = of_dtype(kernel.values[v].type.dtype);
  }

  std::vector<ValueRange> run() {
    visit(kernel_.body);
    return std::move(ranges_);
  }

 private:
  const ValueRange& at(tile::ValueId v) const { return ranges_[static_cast<std::size_t>(v)]; }
  const ValueRange& operand(const Op& op, std::size_t i) const { return at(op.operands[i]); }

  void visit(const Block& block) {
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::loop) set_induction(op);
      for (const Block& inner : op.blocks) visit(inner);
      if (op.results.size() != 1 || !op.blocks.empty()) continue;
      const DType dtype = kernel_.type(op.results[0]).dtype;
      if (is_float(dtype)) continue;
      ranges_[static_cast<std::size_t>(op.results[0])] = clipped(result(op, dtype), dtype);
    }
  }

  void set_induction(const Op& op) {
    const ValueRange &low = operand(op, 0), &high = operand(op, 1), &step = operand(op, 2);
    if (step.low <= 0 || !low.bounded() || high.high == kMax) return;
    ranges_[static_cast<std::size_t>(op.blocks[0].args[0])] = {low.low, std::max(low.low, high.high - 1),
                                                               std::gcd(low.divisor, step.divisor)};
  }

  ValueRange result(const Op& op, DType dtype) const {
    switch (op.kind) {
      case OpKind::constant:
        return exactly(op.number.i);
      case OpKind::scalar_param:
        return param(op.param);
      case OpKind::program_id:
        return between(0, std::max<Index>(programs(op.param) - 1, 0));
      case OpKind::arange:
        return between(0, std::max<Index>(kernel_.type(op.results[0]).size() - 1, 0));
      case OpKind::broadcast:
      case OpKind::reshape:
      case OpKind::transpose:
        return operand(op, 0);
      case OpKind::cast:
        return is_float(kernel_.type(op.operands[0]).dtype) || is_bool(dtype) ? of_dtype(dtype)
                                                                              : operand(op, 0);
      case OpKind::apply:
        return applied(op, dtype);
      case OpKind::reduce:
        return reduced(op, dtype);
      case OpKind::argsort:
        return between(
            0, std::max<Index>(kernel_.type(op.operands[0]).shape[static_cast<std::size_t>(op.axis)] - 1, 0));
      case OpKind::random:
        return between(0, 0xffffffff);
      default:
        return of_dtype(dtype);
    }
  }

  ValueRange applied(const Op& op, DType dtype) const {
    switch (op.prim) {
      case Prim::add:
        return add(operand(op, 0), operand(op, 1));
      case Prim::sub:
        return add(operand(op, 0), negate(operand(op, 1)));
      case Prim::mul:
        return multiply(operand(op, 0), operand(op, 1));
      case Prim::neg:
        return negate(operand(op, 0));
      case Prim::div:
        return divide(operand(op, 0), operand(op, 1));
      case Prim::rem:
        return remainder(operand(op, 0), operand(op, 1));
      case Prim::min:
        return {std::min(operand(op, 0).low, operand(op, 1).low),
                std::min(operand(op, 0).high, operand(op, 1).high),
                std::gcd(operand(op, 0).divisor, operand(op, 1).divisor)};
      case Prim::max:
        return {std::max(operand(op, 0).low, operand(op, 1).low),
                std::max(operand(op, 0).high, operand(op, 1).high),
                std::gcd(operand(op, 0).divisor, operand(op, 1).divisor)};
      case Prim::select:
        return join(operand(op, 1), operand(op, 2));
      default:
        return of_dtype(dtype);
    }
  }

  ValueRange reduced(const Op& op, DType dtype) const {
    const tile::TileType& from = kernel_.type(op.operands[0]);
    if (tile::finds_place(op.monoid))
      return between(0, std::max<Index>(from.shape[static_cast<std::size_t>(op.axis)] - 1, 0));
    if (from.shape[static_cast<std::size_t>(op.axis)] > 0 &&
        (op.monoid == tile::Monoid::max || op.monoid == tile::Monoid::min))
      return operand(op, 0);
    return of_dtype(dtype);
  }

  // Parameters that are extents are sizes of memory.
  ValueRange param(int scalar) const {
    for (const tile::ViewParam& view : kernel_.views)
      for (const tile::Dim& e : view.extents)
        if (e.scalar == scalar) return range_of(e);
    return {};
  }

  Index programs(int axis) const {
    TW_CHECK(static_cast<std::size_t>(axis) < kernel_.grid.size(),
             "a program id along an axis that the grid lacks");
    Index n = 1;
    for (const tile::GridFactor& f : kernel_.grid[static_cast<std::size_t>(axis)]) {
      if (!f.extent.is_constant()) return kMaxPrograms;
      n *= ceil_div(f.extent.value, f.block);
    }
    return std::min(n, kMaxPrograms);
  }

  const Kernel& kernel_;
  std::vector<ValueRange> ranges_;
};

}  // namespace

ValueRange range_of_number(Index value) { return exactly(value); }

std::vector<ValueRange> value_ranges(const Kernel& kernel) { return Ranges(kernel).run(); }

std::vector<bool> differ_between_programs(const Kernel& kernel) {
  std::vector<bool> differs(kernel.values.size(), false);
  tile::for_each_op(kernel.body, [&](const Op& op) {
    const bool any = op.kind == OpKind::program_id ||
                     std::any_of(op.operands.begin(), op.operands.end(),
                                 [&](tile::ValueId v) { return differs[static_cast<std::size_t>(v)]; });
    for (tile::ValueId v : op.results) differs[static_cast<std::size_t>(v)] = any || !op.blocks.empty();
    for (const Block& b : op.blocks)
      for (tile::ValueId v : b.args) differs[static_cast<std::size_t>(v)] = true;
  });
  return differs;
}

ValueRange range_of(const tile::Dim& dim) {
  if (dim.is_constant()) return exactly(dim.value);
  return {0, Index{1} << 48, 1};  // no address space holds more
}

}  // namespace tilewright::printer
