// Evaluates a graph node by node on the ends of intervals, by each row's own float64 function.
#include "support/interval_reference.h"

#include "ops/combine.h"
#include "ops/rows.h"
#include "support/interval_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tilewright::test {

using ir::HostTensor;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpClass;

namespace {

class Evaluation {
 public:
  Evaluation(const ir::Graph& graph, std::span<const HostTensor> inputs)
      : graph_(graph), ranges_(static_cast<std::size_t>(graph.size())) {
    for (std::size_t i = 0; i < inputs.size(); ++i) range(graph.inputs()[i]) = {inputs[i], inputs[i]};
  }

  Intervals run() {
    const std::vector<bool> live = graph_.live();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live[static_cast<std::size_t>(id)] && graph_.node(id).op->kind != OpClass::input)
        range(id) = evaluated(graph_.node(id));
    Intervals out;
    for (NodeId id : graph_.outputs()) {
      out.low.push_back(range(id).low);
      out.high.push_back(range(id).high);
    }
    return out;
  }

 private:
  IntervalTensor& range(NodeId id) { return ranges_[static_cast<std::size_t>(id)]; }
  IntervalTensor& operand(const Node& n, std::size_t i) { return range(n.operands[i]); }

  HostTensor eval_end(const Node& n, HostTensor IntervalTensor::* end) {
    std::vector<HostTensor> operands;
    operands.reserve(n.operands.size());
    for (NodeId o : n.operands) operands.push_back(range(o).*end);
    return evaluate_at(n, operands);
  }

  IntervalTensor evaluated(const Node& n) {
    const bool exact =
        std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) { return range(o).all_exact(); });
    switch (n.op->kind) {
      case OpClass::reshape:
      case OpClass::transpose:
      case OpClass::expand:
      case OpClass::slice:
      case OpClass::pad:
      case OpClass::concat:
        return {eval_end(n, &IntervalTensor::low), eval_end(n, &IntervalTensor::high)};
      case OpClass::pointwise:
      case OpClass::cast:
        return with_error(n, exact ? at_once(n) : pointwise(n));
      case OpClass::reduce:
      case OpClass::scan:
        return with_error(n, reduced(n, exact));
      case OpClass::matmul:
        return with_error(n, product(n, exact));
      case OpClass::take:
      case OpClass::take_along:
        return exact ? at_once(n) : taken(n);
      case OpClass::update_slice:
      case OpClass::dynamic_slice:
        if (!range(n.operands.back()).all_exact()) return IntervalTensor::unknown(n.type);
        return {eval_end(n, &IntervalTensor::low), eval_end(n, &IntervalTensor::high)};
      case OpClass::scatter_add:
      case OpClass::scatter_add_along:
        return with_error(n, scattered(n));
      case OpClass::argsort:
        return exact ? at_once(n) : sorted_positions(n);
      case OpClass::constant:
        return constant(n);
      default:
        return exact ? at_once(n) : IntervalTensor::unknown(n.type);
    }
  }

  // A number that the type does not hold is rounded somewhere.
  IntervalTensor constant(const Node& n) {
    const IntervalTensor r = at_once(n);
    const bool held = std::all_of(r.low.f.begin(), r.low.f.end(),
                                  [&](double v) { return same(round_to(n.type.dtype, v), v); });
    return held ? r : with_error(n, r);
  }

  IntervalTensor at_once(const Node& n) {
    const HostTensor value = eval_end(n, &IntervalTensor::low);
    return {value, value};
  }
  IntervalTensor pointwise(const Node& n) {
    std::vector<const IntervalTensor*> operands;
    operands.reserve(n.operands.size());
    for (NodeId o : n.operands) operands.push_back(&range(o));
    return pointwise_intervals(n, operands);
  }

  // --- what combines elements

  IntervalTensor reduced(const Node& n, bool exact) {
    const IntervalTensor& x = operand(n, 0);
    if (n.op == &ops::kArgmax || n.op == &ops::kArgmin) return exact ? at_once(n) : extreme_index(n);
    if (n.op == &ops::kCumprod && !exact && x.is_float() && !x.any_unknown()) return running_product(n);
    const bool sums = n.op == &ops::kSum || n.op == &ops::kCumsum;
    const bool rises = sums || n.op == &ops::kMax || n.op == &ops::kMin || n.op == &ops::kAny ||
                       n.op == &ops::kAll || n.op == &ops::kCummax || n.op == &ops::kCummin;
    if (!exact && (!rises || x.any_unknown())) return IntervalTensor::unknown(n.type);
    IntervalTensor out{eval_end(n, &IntervalTensor::low), eval_end(n, &IntervalTensor::high)};
    if (!exact) out.forget_nans();
    for (std::size_t i = 0; i < out.low.i.size(); ++i)
      if (out.high.i[i] < out.low.i[i]) out.forget(i);  // a sum wrapped around
    if (!sums || !out.is_float() || out.size() == 0) return out;
    const Index terms = n.op == &ops::kSum ? x.low.type.shape.size() / n.type.shape.size()
                                           : n.type.shape[static_cast<int>(n.attrs.integer("axis"))];
    add_roundings(out, evaluate_at(n, {x.magnitude()}), terms);
    return out;
  }

  // Products of what is at most 1, in whatever order: each multiplication rounds, and what is below the
  // normal numbers may be flushed. Larger factors may overflow in one order and not in another.
  IntervalTensor running_product(const Node& n) {
    const IntervalTensor& x = operand(n, 0);
    IntervalTensor out = x;
    out.low.type = out.high.type = n.type;
    const int axis = static_cast<int>(n.attrs.integer("axis"));
    const DType computed = compute_dtype(n.type.dtype);
    ops::for_each_line(n.type.shape, axis, [&](Index first, Index stride) {
      double low = 1, high = 1;
      bool known = true;
      for (Index i = 0; i < n.type.shape[axis]; ++i) {
        const auto at = static_cast<std::size_t>(first + i * stride);
        const double a = x.low.f[at], b = x.high.f[at];
        known = known && std::fabs(a) <= 1 && std::fabs(b) <= 1;
        if (!known) {
          out.forget(at);
          continue;
        }
        const auto [least, most] = std::minmax({low * a, low * b, high * a, high * b});
        low = least, high = most;
        const double terms = static_cast<double>(i + 1);
        const double error = terms * (unit_roundoff(computed) * std::max(std::fabs(low), std::fabs(high)) +
                                      min_normal(computed));
        out.low.f[at] = low - error, out.high.f[at] = high + error;
      }
    });
    return out;
  }

  // A place of a sorted line is known where the element there lies apart from all others of its line, or, of
  // exact ones, is equal to some: by the order of the lows all before it are lower, all behind it higher.
  IntervalTensor sorted_positions(const Node& n) {
    const IntervalTensor& x = operand(n, 0);
    const int axis = static_cast<int>(n.attrs.integer("axis"));
    const Index length = n.type.shape[axis];
    std::vector<std::size_t> unknown;
    IntervalTensor out{eval_end(n, &IntervalTensor::low), eval_end(n, &IntervalTensor::high)};
    const auto end = [&](const HostTensor& of, std::size_t i) {
      return of.f.empty() ? static_cast<double>(of.i[i]) : std::isnan(of.f[i]) ? kEndless : of.f[i];
    };
    ops::for_each_line(n.type.shape, axis, [&](Index first, Index stride) {
      const auto place = [&](Index r) { return static_cast<std::size_t>(first + r * stride); };
      const auto element = [&](Index r) { return place(out.low.i[place(r)]); };
      for (Index r = 0; r < length; ++r) {
        bool apart = out.low.i[place(r)] == out.high.i[place(r)];
        for (Index other = 0; apart && other < length; ++other) {
          const std::size_t a = element(r), b = element(other);
          const bool overlap = end(x.low, a) <= end(x.high, b) && end(x.low, b) <= end(x.high, a);
          apart = other == r || !overlap || (x.is_exact(a) && x.is_exact(b));
        }
        if (!apart) unknown.push_back(place(r));
      }
    });
    for (const std::size_t i : unknown) out.forget(i);
    return out;
  }

  // Widens by n additions, each of which rounds what was added so far, in whatever order: where the positive
  // terms alone are more than the largest number, or the negative ones, what was added so far may be
  // infinite.
  static void add_roundings(IntervalTensor& out, const HostTensor& magnitudes, Index terms) {
    const DType computed = compute_dtype(out.low.type.dtype);
    const double each = unit_roundoff(computed) * static_cast<double>(std::max<Index>(terms - 1, 0)),
                 most = max_finite(computed);
    for (std::size_t i = 0; i < out.low.f.size(); ++i) {
      const bool rises = (magnitudes.f[i] + out.high.f[i]) / 2 > most,
                 falls = (magnitudes.f[i] - out.low.f[i]) / 2 > most;
      if (rises && falls) {
        out.forget(i);
        continue;
      }
      if (rises) out.high.f[i] = kEndless;
      if (falls) out.low.f[i] = -kEndless;
      const double error = each * magnitudes.f[i];
      if (std::isnan(error) || error == 0) continue;
      out.low.f[i] -= error, out.high.f[i] += error;
    }
    if (std::any_of(magnitudes.f.begin(), magnitudes.f.end(), [](double v) { return std::isinf(v); }))
      out.forget_nans();
  }

  // From the first to the last element that no other certainly exceeds.
  IntervalTensor extreme_index(const Node& n) {
    const IntervalTensor& x = operand(n, 0);
    if (x.any_unknown() || !x.is_float()) return IntervalTensor::unknown(n.type);
    const Shape& shape = x.low.type.shape;
    const int axis = static_cast<int>(n.attrs.integers("axes")[0]);
    Index inner = 1;
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
    const bool largest = n.op == &ops::kArgmax;
    IntervalTensor out = at_once(n);
    for (std::size_t row = 0; row < out.size(); ++row) {
      const Index first =
          static_cast<Index>(row) / inner * inner * shape[axis] + static_cast<Index>(row) % inner;
      const auto at = [&](Index i) { return static_cast<std::size_t>(first + i * inner); };
      double certain = -kEndless;
      bool nan = false;
      for (Index i = 0; i < shape[axis]; ++i) {
        certain = std::max(certain, largest ? x.low.f[at(i)] : -x.high.f[at(i)]);
        nan = nan || std::isnan(x.low.f[at(i)]);
      }
      if (nan) {
        out.forget(row);
        continue;
      }
      std::int64_t from = shape[axis], to = 0;
      for (Index i = 0; i < shape[axis]; ++i) {
        if ((largest ? x.high.f[at(i)] : -x.low.f[at(i)]) < certain) continue;
        from = std::min(from, i), to = i;
      }
      out.low.i[row] = from, out.high.i[row] = to;
    }
    return out;
  }

  // The middles' product, and around it what half of each interval's length makes of it.
  IntervalTensor product(const Node& n, bool exact) {
    if (!tilewright::is_float(n.type.dtype)) return exact ? at_once(n) : IntervalTensor::unknown(n.type);
    const IntervalTensor &a = operand(n, 0), &b = operand(n, 1);
    if (a.any_unknown() || b.any_unknown()) return IntervalTensor::unknown(n.type);
    const HostTensor value = evaluate_at(n, {a.middle(), b.middle()}),
                     of_a = evaluate_at(n, {a.half(), b.magnitude()}),
                     of_b = evaluate_at(n, {a.magnitude(), b.half()});
    IntervalTensor out{value, value};
    for (std::size_t i = 0; i < value.f.size(); ++i) {
      const double error = of_a.f[i] + of_b.f[i];
      if (error != 0) out.low.f[i] -= error, out.high.f[i] += error;
    }
    if (!exact) out.forget_nans();
    const Shape& shape = a.low.type.shape;
    add_roundings(out, evaluate_at(n, {a.magnitude(), b.magnitude()}), shape[shape.rank() - 1]);
    return out;
  }

  // The sorted ends, if `n` takes elements by positions that sort the same elements: whichever element stands
  // at a place, it lies between them.
  std::optional<HostTensor> sorted_by(const Node& n, HostTensor IntervalTensor::* end) {
    const auto positions = sorting_positions(n.operands[1], n.operands[0], end);
    if (!positions) return std::nullopt;
    return evaluate_at(n, {operand(n, 0).*end, *positions});
  }
  std::optional<HostTensor> sorting_positions(NodeId id, NodeId sorted, HostTensor IntervalTensor::* end) {
    const Node& n = graph_.node(id);
    if (n.op->kind == OpClass::argsort && n.operands[0] == sorted)
      return evaluate_at(n, {range(sorted).*end});
    if (n.op->kind != OpClass::slice) return std::nullopt;
    const auto all = sorting_positions(n.operands[0], sorted, end);
    return all ? std::optional(evaluate_at(n, {*all})) : std::nullopt;
  }

  IntervalTensor taken(const Node& n) {
    const IntervalTensor& x = operand(n, 0);
    IntervalTensor index = operand(n, 1);
    const auto lowest = sorted_by(n, &IntervalTensor::low), highest = sorted_by(n, &IntervalTensor::high);
    if (lowest && highest && !x.any_unknown()) return {*lowest, *highest};
    std::vector<std::size_t> unknown;  // each element of take_along has an index of its own
    for (std::size_t i = 0; n.op->kind == OpClass::take_along && i < index.size(); ++i)
      if (index.is_unknown(i)) unknown.push_back(i), index.low.i[i] = index.high.i[i] = 0;
    if (index.any_unknown()) return IntervalTensor::unknown(n.type);
    IntervalTensor out = IntervalTensor::unknown(n.type);
    std::vector<int> nans(out.size());
    for (std::int64_t step = 0, tries = index.tries(); step < tries; ++step) {
      out.include(evaluate_at(n, {x.low, index.tried(step)}), step == 0, nans);
      out.include(evaluate_at(n, {x.high, index.tried(step)}), false, nans);
    }
    for (std::size_t i = 0; i < nans.size(); ++i)
      if (nans[i] > 0) out.forget(i);
    for (const std::size_t i : unknown) out.forget(i);
    return out;
  }

  IntervalTensor scattered(const Node& n) {
    const IntervalTensor &index = operand(n, 0), &update = operand(n, 1);
    if (!index.all_exact() || (!update.all_exact() && update.any_unknown()))
      return IntervalTensor::unknown(n.type);
    IntervalTensor out{eval_end(n, &IntervalTensor::low), eval_end(n, &IntervalTensor::high)};
    if (out.is_float())
      add_roundings(out, evaluate_at(n, {index.low, update.magnitude()}), index.low.type.shape.size());
    return out;
  }

  // --- errors of the op itself

  // Sums, differences and products of exact f32 numbers are correctly rounded. Of f64 the oracle itself
  // rounds.
  bool has_no_error(const Node& n, const IntervalTensor& r, std::size_t i) {
    if (n.op != &ops::kAdd && n.op != &ops::kSub && n.op != &ops::kMul) return false;
    return n.type.dtype != DType::f64 && r.is_exact(i) && operand(n, 0).is_exact(i) &&
           operand(n, 1).is_exact(i) && round_to(DType::f32, r.low.f[i]) == r.low.f[i];
  }

  IntervalTensor with_error(const Node& n, IntervalTensor r) {
    if (!r.is_float() || test::is_exact(*n.op)) return r;
    const DType computed = compute_dtype(n.type.dtype);
    const double noise = noise_of(n.type.dtype), least = min_normal(computed), most = max_finite(computed);
    for (std::size_t i = 0; i < r.low.f.size(); ++i) {
      double &low = r.low.f[i], &high = r.high.f[i];
      if (std::isnan(low)) continue;
      if (!has_no_error(n, r, i)) {
        if (std::isfinite(low)) low -= noise * std::fabs(low);
        if (std::isfinite(high)) high += noise * std::fabs(high);
        // Subnormal numbers may be flushed, and what rounds up to infinity may be there.
        if (low > 0 && low < least) low = 0;
        if (high < 0 && high > -least) high = 0;
        if (high > most) high = kEndless;
        if (low < -most) low = -kEndless;
      }
      may_be_stored(n.type.dtype, r, i);
    }
    return r;
  }

  // Kernels that store a narrow value round it, to 0 or to infinity as well; others go on with what they
  // have.
  static void may_be_stored(DType dtype, IntervalTensor& r, std::size_t i) {
    if (dtype == compute_dtype(dtype)) return;
    const double low = round_to(dtype, r.low.f[i]), high = round_to(dtype, r.high.f[i]);
    r.low.f[i] = std::min(r.low.f[i], low), r.high.f[i] = std::max(r.high.f[i], high);
    if (std::isnan(low) || std::isnan(high)) r.forget(i);
  }

  const ir::Graph& graph_;
  std::vector<IntervalTensor> ranges_;
};

}  // namespace

double noise_of(DType dtype) {
  if (dtype == DType::f64) return 0x1p-50;
  return std::max(0x1p-22, unit_roundoff(dtype));
}

bool is_exact(const Op& op) {
  static constexpr const Op* kExact[] = {
      &ops::kNeg,   &ops::kAbs,     &ops::kSign,    &ops::kFloor,  &ops::kCeil,          &ops::kRound,
      &ops::kTrunc, &ops::kMinimum, &ops::kMaximum, &ops::kWhere,  &ops::kCast,          &ops::kStopGradient,
      &ops::kMax,   &ops::kMin,     &ops::kCummax,  &ops::kCummin, &ops::kWithGradientOf};
  return std::find(std::begin(kExact), std::end(kExact), &op) != std::end(kExact);
}

Intervals reference_intervals(const ir::Graph& graph, std::span<const HostTensor> inputs) {
  return Evaluation(graph, inputs).run();
}

std::string difference(std::span<const HostTensor> got, const Intervals& intervals) {
  if (got.size() != intervals.low.size()) return "another number of outputs";
  for (std::size_t o = 0; o < got.size(); ++o) {
    const HostTensor &low = intervals.low[o], &high = intervals.high[o];
    const DType dtype = low.type.dtype;
    if (got[o].type != low.type)
      return fmt::format("output {}: type {} instead of {}", o, to_string(got[o].type), to_string(low.type));
    for (std::size_t i = 0; i < low.i.size(); ++i)
      if (got[o].i[i] < low.i[i] || got[o].i[i] > high.i[i])
        return fmt::format("output {} element {}: {} is not from {} to {}", o, i, got[o].i[i], low.i[i],
                           high.i[i]);
    for (std::size_t i = 0; i < low.f.size(); ++i) {
      const double value = got[o].f[i];
      if (low.f[i] == -kEndless && high.f[i] == kEndless) continue;
      const bool inside = value >= round_to(dtype, low.f[i]) && value <= round_to(dtype, high.f[i]);
      if (!inside && !(std::isnan(value) && std::isnan(low.f[i])))
        return fmt::format("output {} element {}: {} is not from {} to {}", o, i, value, low.f[i], high.f[i]);
    }
  }
  return "";
}

}  // namespace tilewright::test
