// One loop per op over whole tiles.
#include "backends/reference/compute.h"

#include <tilewright/base/error.h>
#include <tilewright/base/philox.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tile/prim_eval.h"

namespace tilewright::reference {

using tile::Kernel;
using tile::Monoid;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::TileType;

AxisWalk walk_axis(const TileType& type, int axis) {
  AxisWalk walk{.length = type.shape[static_cast<std::size_t>(axis)]};
  for (int d = 0; d < type.rank(); ++d) {
    const Index extent = type.shape[static_cast<std::size_t>(d)];
    if (d < axis) walk.outer *= extent;
    if (d > axis) walk.inner *= extent;
  }
  return walk;
}

BroadcastWalk walk_broadcast(const TileType& from, const TileType& to) {
  BroadcastWalk walk;
  const auto extent = [](const TileType& t, int from_end) {
    return from_end < t.rank() ? t.shape[t.shape.size() - 1 - static_cast<std::size_t>(from_end)] : 1;
  };
  walk.columns = extent(to, 0);
  walk.rows = extent(to, 1);
  walk.column_step = extent(from, 0) == 1 ? 0 : 1;
  walk.row_step = extent(from, 1) == 1 ? 0 : extent(from, 0);
  return walk;
}

namespace {

template <class T>
void broadcast(const std::vector<T>& from, const BroadcastWalk& walk, std::vector<T>& to) {
  std::size_t n = 0;
  for (Index r = 0; r < walk.rows; ++r)
    for (Index c = 0; c < walk.columns; ++c)
      to[n++] = from[static_cast<std::size_t>(r * walk.row_step + c * walk.column_step)];
}

template <class T>
void transpose(const std::vector<T>& from, const TileType& type, std::vector<T>& to) {
  const auto rows = static_cast<std::size_t>(type.shape[0]),
             columns = static_cast<std::size_t>(type.shape[1]);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

void cast(const Tile& from, DType from_dtype, Tile& to, DType to_dtype) {
  const std::size_t n = is_float(from_dtype) ? from.f.size() : from.i.size();
  if (!is_float(from_dtype) && !is_float(to_dtype)) {
    for (std::size_t i = 0; i < n; ++i) to.i[i] = wrap_to(to_dtype, from.i[i]);
  } else if (!is_float(from_dtype)) {
    convert(from.i.data(), DType::i64, to.f.data(), DType::f64, n);
    // Narrow results round once, from the integer itself: float64 holds only 53 of its bits.
    for (std::size_t i = 0; to_dtype != DType::f64 && i < n; ++i) {
      std::uint64_t storage = 0;
      store_i64(&storage, to_dtype, from.i[i]);
      to.f[i] = load_f64(&storage, to_dtype);
    }
  } else if (!is_float(to_dtype)) {
    for (std::size_t i = 0; i < n; ++i) to.i[i] = float_to_int(to_dtype, from.f[i]);
  } else if (to_dtype == DType::f64) {
    to.f = from.f;
  } else if (to_dtype == DType::f32) {
    for (std::size_t i = 0; i < n; ++i) to.f[i] = static_cast<double>(static_cast<float>(from.f[i]));
  } else {
    for (std::size_t i = 0; i < n; ++i) to.f[i] = round_to(to_dtype, from.f[i]);
  }
}

void apply(const Kernel& kernel, const Op& op, Values& values, Tile& result) {
  const auto operand = [&](std::size_t i) -> const Tile& {
    return at(values, op.operands[i < op.operands.size() ? i : 0]);
  };
  const Tile &a = operand(0), &b = operand(1), &c = operand(2);
  if (op.prim == Prim::select) {
    for (std::size_t i = 0; i < result.f.size(); ++i) result.f[i] = a.i[i] != 0 ? b.f[i] : c.f[i];
    for (std::size_t i = 0; i < result.i.size(); ++i) result.i[i] = a.i[i] != 0 ? b.i[i] : c.i[i];
    return;
  }
  const DType dtype = kernel.type(op.operands[0]).dtype;
  if (!is_float(dtype))
    return eval_i64(op.prim, dtype, a.i.data(), b.i.data(), result.i.data(), result.i.size());
  if (info(op.prim).to_bool)
    return eval_test(op.prim, a.f.data(), b.f.data(), result.i.data(), result.i.size());
  eval_f64(op.prim, a.f.data(), b.f.data(), c.f.data(), result.f.data(), result.f.size());
}

// --- along an axis

double combine(Monoid monoid, double a, double b) {
  switch (monoid) {
    case Monoid::sum:
      return a + b;
    case Monoid::prod:
      return a * b;
    case Monoid::max:
      return a > b || std::isnan(a) ? a : b;
    default:
      return a < b || std::isnan(a) ? a : b;
  }
}

std::int64_t combine(Monoid monoid, std::int64_t a, std::int64_t b) {
  switch (monoid) {
    case Monoid::sum:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case Monoid::prod:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case Monoid::max:
      return std::max(a, b);
    case Monoid::min:
      return std::min(a, b);
    case Monoid::logical_and:
      return a & b;
    default:
      return a | b;
  }
}

// Rows at a time, so that the walk follows memory whatever the axis.
template <class T>
void reduce(Monoid monoid, const std::vector<T>& from, const AxisWalk& walk, std::vector<T>& to) {
  for (Index o = 0; o < walk.outer; ++o) {
    T* total = to.data() + o * walk.inner;
    std::copy_n(from.data() + walk.at(o, 0, 0), walk.inner, total);
    for (Index j = 1; j < walk.length; ++j)
      for (Index i = 0; i < walk.inner; ++i)
        total[i] = combine(monoid, total[i], from[static_cast<std::size_t>(walk.at(o, j, i))]);
  }
}

template <class T>
void scan(Monoid monoid, const std::vector<T>& from, const AxisWalk& walk, std::vector<T>& to) {
  for (Index o = 0; o < walk.outer; ++o) {
    std::copy_n(from.data() + walk.at(o, 0, 0), walk.inner, to.data() + walk.at(o, 0, 0));
    for (Index n = walk.at(o, 1, 0); n < walk.at(o + 1, 0, 0); ++n)
      to[static_cast<std::size_t>(n)] =
          combine(monoid, to[static_cast<std::size_t>(n - walk.inner)], from[static_cast<std::size_t>(n)]);
  }
}

bool beats(Monoid monoid, double a, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(a) || (monoid == Monoid::argmax ? a > best : a < best);
}
bool beats(Monoid monoid, std::int64_t a, std::int64_t best) {
  return monoid == Monoid::argmax ? a > best : a < best;
}

template <class T>
void reduce_index(Monoid monoid, const std::vector<T>& from, const AxisWalk& walk,
                  std::vector<std::int64_t>& to) {
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      Index best = 0;
      for (Index j = 1; j < walk.length; ++j)
        if (beats(monoid, from[static_cast<std::size_t>(walk.at(o, j, i))],
                  from[static_cast<std::size_t>(walk.at(o, best, i))]))
          best = j;
      to[static_cast<std::size_t>(o * walk.inner + i)] = best;
    }
}

// Whether a comes before b in ascending order; a NaN is the largest.
bool precedes(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }
bool precedes(std::int64_t a, std::int64_t b) { return a < b; }

template <class T>
void argsort(Order order, const std::vector<T>& from, const AxisWalk& walk, std::vector<std::int64_t>& to) {
  std::vector<Index> line(static_cast<std::size_t>(walk.length));
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      std::iota(line.begin(), line.end(), 0);
      const auto element = [&](Index j) { return from[static_cast<std::size_t>(walk.at(o, j, i))]; };
      std::stable_sort(line.begin(), line.end(), [&](Index a, Index b) {
        return order == Order::ascending ? precedes(element(a), element(b))
                                         : precedes(element(b), element(a));
      });
      for (Index j = 0; j < walk.length; ++j)
        to[static_cast<std::size_t>(walk.at(o, j, i))] = line[static_cast<std::size_t>(j)];
    }
}

void wrap(DType dtype, std::vector<std::int64_t>& values) {
  if (dtype == DType::i64 || dtype == DType::boolean) return;
  for (std::int64_t& v : values) v = wrap_to(dtype, v);
}

void along_axis(const Kernel& kernel, const Op& op, const Tile& from, Tile& to) {
  const TileType& type = kernel.type(op.operands[0]);
  const AxisWalk walk = walk_axis(type, op.axis);
  const bool index = tile::finds_place(op.monoid);
  if (index)
    return is_float(type.dtype) ? reduce_index(op.monoid, from.f, walk, to.i)
                                : reduce_index(op.monoid, from.i, walk, to.i);
  if (op.kind == OpKind::reduce && is_float(type.dtype)) return reduce(op.monoid, from.f, walk, to.f);
  if (is_float(type.dtype)) return scan(op.monoid, from.f, walk, to.f);
  op.kind == OpKind::reduce ? reduce(op.monoid, from.i, walk, to.i) : scan(op.monoid, from.i, walk, to.i);
  wrap(type.dtype, to.i);  // sums and products modulo 2^64 wrap to the same as step by step
}

// --- products, random numbers

// c starts as the accumulator; k ascends for each element.
template <class T, class Accumulator>
void multiply_add(const TileType& a_type, const std::vector<T>& a, const std::vector<T>& b,
                  std::vector<Accumulator>& c) {
  const auto rows = static_cast<std::size_t>(a_type.shape[0]),
             inner = static_cast<std::size_t>(a_type.shape[1]);
  const std::size_t columns = c.size() / rows;
  for (std::size_t m = 0; m < rows; ++m)
    for (std::size_t k = 0; k < inner; ++k) {
      const auto factor = static_cast<Accumulator>(a[m * inner + k]);
      for (std::size_t n = 0; n < columns; ++n)
        c[m * columns + n] += factor * static_cast<Accumulator>(b[k * columns + n]);
    }
}

void dot(const Kernel& kernel, const Op& op, Values& values, Tile& result) {
  const Tile &a = at(values, op.operands[0]), &b = at(values, op.operands[1]),
             &acc = at(values, op.operands[2]);
  const TileType& type = kernel.type(op.operands[0]);
  if (is_float(type.dtype)) {
    result.f = acc.f;
    return multiply_add(type, a.f, b.f, result.f);
  }
  std::vector<std::uint64_t> total(acc.i.begin(), acc.i.end());  // wraps around
  multiply_add(type, a.i, b.i, total);
  result.i.assign(total.begin(), total.end());
  wrap(kernel.type(op.results[0]).dtype, result.i);
}

void random(const Op& op, Values& values, Tile& result) {
  const auto seed = static_cast<std::uint64_t>(scalar(values, op.operands[0]));
  const std::vector<std::int64_t>& counters = at(values, op.operands[1]).i;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const auto counter = static_cast<std::uint64_t>(counters[i]);
    result.i[i] = philox4x32(seed, counter >> 2)[counter & 3];
  }
}

}  // namespace

void compute(const Kernel& kernel, const Op& op, Values& values) {
  const TileType& type = kernel.type(op.results[0]);
  Tile& result = at(values, op.results[0]);
  const auto size = static_cast<std::size_t>(type.size());
  (is_float(type.dtype) ? result.f.resize(size) : result.i.resize(size));
  const auto first = [&]() -> const Tile& { return at(values, op.operands[0]); };
  switch (op.kind) {
    case OpKind::constant:
      if (is_float(type.dtype)) return result.f.assign(size, op.number.f);
      return result.i.assign(size, op.number.i);
    case OpKind::arange:
      return std::iota(result.i.begin(), result.i.end(), 0);
    case OpKind::broadcast: {
      const BroadcastWalk walk = walk_broadcast(kernel.type(op.operands[0]), type);
      return is_float(type.dtype) ? broadcast(first().f, walk, result.f)
                                  : broadcast(first().i, walk, result.i);
    }
    case OpKind::reshape:
      (is_float(type.dtype) ? void(result.f = first().f) : void(result.i = first().i));
      return;
    case OpKind::transpose: {
      const TileType& from = kernel.type(op.operands[0]);
      return is_float(type.dtype) ? transpose(first().f, from, result.f)
                                  : transpose(first().i, from, result.i);
    }
    case OpKind::cast:
      return cast(first(), kernel.type(op.operands[0]).dtype, result, type.dtype);
    case OpKind::apply:
      return apply(kernel, op, values, result);
    case OpKind::reduce:
    case OpKind::scan:
      return along_axis(kernel, op, first(), result);
    case OpKind::argsort: {
      const TileType& from = kernel.type(op.operands[0]);
      const AxisWalk walk = walk_axis(from, op.axis);
      return is_float(from.dtype) ? argsort(op.order, first().f, walk, result.i)
                                  : argsort(op.order, first().i, walk, result.i);
    }
    case OpKind::dot:
      return dot(kernel, op, values, result);
    case OpKind::random:
      return random(op, values, result);
    default:
      TW_CHECK(false, std::string(name(op.kind)) + " is no compute op");
  }
}

}  // namespace tilewright::reference
