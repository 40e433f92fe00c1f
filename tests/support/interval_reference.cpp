// Evaluates a graph node by node on the ends of intervals, by each row's own float64 function.
#include "support/interval_reference.h"

#include "ops/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::test {

using ir::HostTensor;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpClass;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;
// Integers that are one of so many are tried one by one; of more nothing is known.
constexpr std::int64_t kTried = 4;

struct Range {
  HostTensor low, high;
};

bool is_float(const HostTensor& t) { return tilewright::is_float(t.type.dtype); }
std::size_t count_of(const HostTensor& t) { return static_cast<std::size_t>(t.type.shape.size()); }

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool is_exact(const Range& r, std::size_t i) {
  return is_float(r.low) ? same(r.low.f[i], r.high.f[i]) : r.low.i[i] == r.high.i[i];
}
bool all_exact(const Range& r) {
  for (std::size_t i = 0; i < count_of(r.low); ++i)
    if (!is_exact(r, i)) return false;
  return true;
}
// Integers of which not every one is tried are unknown, too.
bool is_unknown(const Range& r, std::size_t i) {
  if (is_float(r.low)) return r.low.f[i] == -kInfinity && r.high.f[i] == kInfinity;
  return r.high.i[i] < r.low.i[i] ||
         static_cast<std::uint64_t>(r.high.i[i]) - static_cast<std::uint64_t>(r.low.i[i]) >=
             static_cast<std::uint64_t>(kTried);
}
bool any_unknown(const Range& r) {
  for (std::size_t i = 0; i < count_of(r.low); ++i)
    if (is_unknown(r, i)) return true;
  return false;
}
void forget(Range& r, std::size_t i) {
  if (is_float(r.low)) {
    r.low.f[i] = -kInfinity, r.high.f[i] = kInfinity;
  } else {
    r.low.i[i] = float_to_int(r.low.type.dtype, -kInfinity);
    r.high.i[i] = is_bool(r.low.type.dtype) ? 1 : float_to_int(r.low.type.dtype, kInfinity);
    if (is_bool(r.low.type.dtype)) r.low.i[i] = 0;
  }
}
void forget(Range& r) {
  for (std::size_t i = 0; i < count_of(r.low); ++i) forget(r, i);
}

// The values `step` of those between the ends: of integers one after another, of floats both ends.
HostTensor tried(const Range& r, std::int64_t step) {
  if (step == 0) return r.low;
  if (is_float(r.low)) return r.high;
  HostTensor out = r.low;
  for (std::size_t i = 0; i < out.i.size(); ++i)
    out.i[i] = is_unknown(r, i) ? r.low.i[i] : std::min(r.low.i[i] + step, r.high.i[i]);
  return out;
}
std::int64_t steps_of(const Range& r) {
  if (is_float(r.low)) return all_exact(r) ? 1 : 2;
  std::int64_t most = 1;
  for (std::size_t i = 0; i < r.low.i.size(); ++i)
    if (!is_unknown(r, i)) most = std::max(most, r.high.i[i] - r.low.i[i] + 1);
  return most;
}

HostTensor mapped(HostTensor t, const HostTensor& other, double (*fn)(double, double)) {
  for (std::size_t i = 0; i < t.f.size(); ++i) t.f[i] = fn(t.f[i], other.f[i]);
  return t;
}
HostTensor magnitude(const Range& r) {
  return mapped(r.low, r.high, [](double a, double b) { return std::max(std::fabs(a), std::fabs(b)); });
}

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
  Range& range(NodeId id) { return ranges_[static_cast<std::size_t>(id)]; }
  Range& operand(const Node& n, std::size_t i) { return range(n.operands[i]); }

  // The row's function of some of the values that the operands may have.
  static HostTensor eval(const Node& n, const std::vector<HostTensor>& operands) {
    std::vector<const HostTensor*> pointers;
    pointers.reserve(operands.size());
    for (const HostTensor& o : operands) pointers.push_back(&o);
    return n.op->eval(pointers, n.attrs, n.type);
  }
  HostTensor eval_end(const Node& n, HostTensor Range::* end) {
    std::vector<HostTensor> operands;
    for (NodeId o : n.operands) operands.push_back(range(o).*end);
    return eval(n, operands);
  }

  Range evaluated(const Node& n) {
    const bool exact =
        std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) { return all_exact(range(o)); });
    switch (n.op->kind) {
      case OpClass::reshape:
      case OpClass::transpose:
      case OpClass::expand:
      case OpClass::slice:
      case OpClass::pad:
      case OpClass::concat:
        return {eval_end(n, &Range::low), eval_end(n, &Range::high)};
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
      case OpClass::scatter_add:
      case OpClass::scatter_add_along:
        return with_error(n, scattered(n));
      case OpClass::constant:
        return constant(n);
      default:
        return exact ? at_once(n) : unknown(n);
    }
  }

  // A number that the type does not hold is rounded somewhere.
  Range constant(const Node& n) {
    const Range r = at_once(n);
    const bool held = std::all_of(r.low.f.begin(), r.low.f.end(),
                                  [&](double v) { return same(round_to(n.type.dtype, v), v); });
    return held ? r : with_error(n, r);
  }

  Range at_once(const Node& n) {
    const HostTensor value = eval_end(n, &Range::low);
    return {value, value};
  }
  static Range unknown(const Node& n) {
    Range r{{.type = n.type}, {.type = n.type}};
    const auto count = static_cast<std::size_t>(n.type.shape.size());
    for (HostTensor* t : {&r.low, &r.high})
      if (is_float(*t))
        t->f.assign(count, 0);
      else
        t->i.assign(count, 0);
    forget(r);
    return r;
  }

  // --- pointwise

  // Functions that rise or fall along each operand alone are extreme where every operand is.
  Range pointwise(const Node& n) {
    if (n.op == &ops::kWhere) return chosen(n);
    std::vector<std::int64_t> steps, at(n.operands.size(), 0);
    for (NodeId o : n.operands) steps.push_back(steps_of(range(o)));
    Range out = unknown(n);
    std::vector<int> nans(count_of(out.low));
    int tries = 0;
    for (bool more = true; more; ++tries) {
      std::vector<HostTensor> operands;
      for (std::size_t o = 0; o < at.size(); ++o) operands.push_back(tried(operand(n, o), at[o]));
      include(out, eval(n, operands), nans, tries == 0);
      more = false;
      for (std::size_t o = 0; o < at.size() && !more; ++o) {
        more = ++at[o] < steps[o];
        if (!more) at[o] = 0;
      }
    }
    for (std::size_t i = 0; i < nans.size(); ++i) {
      const auto any = [&](const auto& holds) {
        return std::any_of(n.operands.begin(), n.operands.end(), [&](NodeId o) { return holds(range(o)); });
      };
      const bool certain = nans[i] == tries && !any([&](const Range& r) { return !is_exact(r, i); });
      if (certain)
        out.low.f[i] = out.high.f[i] = std::numeric_limits<double>::quiet_NaN();
      else if (nans[i] > 0 || any([&](const Range& r) { return is_unknown(r, i); }))
        forget(out, i);
      else
        mend(n, out, i);
    }
    return out;
  }

  static void include(Range& out, const HostTensor& value, std::vector<int>& nans, bool first) {
    for (std::size_t i = 0; i < value.f.size(); ++i) {
      if (std::isnan(value.f[i])) {
        ++nans[i];
        continue;
      }
      const bool alone = first || nans[i] > 0;  // with NaN it is forgotten
      out.low.f[i] = alone ? value.f[i] : std::min(out.low.f[i], value.f[i]);
      out.high.f[i] = alone ? value.f[i] : std::max(out.high.f[i], value.f[i]);
    }
    for (std::size_t i = 0; i < value.i.size(); ++i) {
      out.low.i[i] = first ? value.i[i] : std::min(out.low.i[i], value.i[i]);
      out.high.i[i] = first ? value.i[i] : std::max(out.high.i[i], value.i[i]);
    }
  }

  // What has other extremes than those at the ends, of operands that are floats.
  void mend(const Node& n, Range& out, std::size_t i) {
    const Op* op = n.op;
    if (!is_float(operand(n, 0).low) ||
        std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) { return is_exact(range(o), i); }))
      return;
    const double low = operand(n, 0).low.f[i], high = operand(n, 0).high.f[i];
    const bool zero = low <= 0 && high >= 0, to_bool = op == &ops::kCast && is_bool(n.type.dtype);
    const bool squares = op == &ops::kMul && n.operands[0] == n.operands[1];
    if ((op == &ops::kAbs || squares) && zero) out.low.f[i] = 0;
    if (to_bool && zero) out.low.i[i] = 0;
    if (op == &ops::kSin || op == &ops::kCos) {  // no steeper than 1
      out.low.f[i] = std::max(-1.0, out.low.f[i] - (high - low) / 2);
      out.high.f[i] = std::min(1.0, out.high.f[i] + (high - low) / 2);
    }
    if (op == &ops::kTan && std::floor(low / kPi + 0.5) != std::floor(high / kPi + 0.5)) forget(out, i);
    if (op == &ops::kReciprocal && zero) forget(out, i);
    if (n.operands.size() < 2) return;
    const double low2 = operand(n, 1).low.f[i], high2 = operand(n, 1).high.f[i];
    const bool zero2 = low2 <= 0 && high2 >= 0;
    if ((op == &ops::kEq || op == &ops::kNe) && low <= high2 && low2 <= high)
      out.low.i[i] = 0, out.high.i[i] = 1;
    if (op == &ops::kDiv && zero2) forget(out, i);
    if (op == &ops::kPow && ((low < 0 && low2 != high2) || (zero && low < 0))) forget(out, i);
    if (op == &ops::kAtan2 && low2 <= 0) out.low.f[i] = -kPi, out.high.f[i] = kPi;
    if (op == &ops::kRem) {
      const auto whole = [](double a, double b) { return std::trunc(a / b); };
      const bool alike = !zero2 && whole(low, low2) == whole(high, high2) &&
                         whole(low, high2) == whole(high, low2) && whole(low, low2) == whole(low, high2);
      const double most = std::max(std::fabs(low2), std::fabs(high2));
      if (!alike) out.low.f[i] = -most, out.high.f[i] = most;
    }
  }

  Range chosen(const Node& n) {
    const Range &of = operand(n, 0), &yes = operand(n, 1), &no = operand(n, 2);
    Range out = yes;
    for (std::size_t i = 0; i < count_of(out.low); ++i) {
      const bool may_be_no = of.low.i[i] == 0, may_be_yes = of.high.i[i] != 0;
      if (!may_be_no) continue;
      if (is_float(out.low)) {
        const bool nan = std::isnan(yes.low.f[i]) || std::isnan(no.low.f[i]);
        out.low.f[i] = may_be_yes ? std::min(yes.low.f[i], no.low.f[i]) : no.low.f[i];
        out.high.f[i] = may_be_yes ? std::max(yes.high.f[i], no.high.f[i]) : no.high.f[i];
        if (may_be_yes && nan) forget(out, i);
      } else {
        out.low.i[i] = may_be_yes ? std::min(yes.low.i[i], no.low.i[i]) : no.low.i[i];
        out.high.i[i] = may_be_yes ? std::max(yes.high.i[i], no.high.i[i]) : no.high.i[i];
      }
    }
    return out;
  }

  // --- what combines elements

  Range reduced(const Node& n, bool exact) {
    const Range& x = operand(n, 0);
    if (n.op == &ops::kArgmax || n.op == &ops::kArgmin) return exact ? at_once(n) : extreme_index(n);
    const bool sums = n.op == &ops::kSum || n.op == &ops::kCumsum;
    const bool rises = sums || n.op == &ops::kMax || n.op == &ops::kMin || n.op == &ops::kAny ||
                       n.op == &ops::kAll || n.op == &ops::kCummax || n.op == &ops::kCummin;
    if (!exact && (!rises || any_unknown(x))) return unknown(n);
    Range out{eval_end(n, &Range::low), eval_end(n, &Range::high)};
    if (!exact) forget_nans(out);
    if (!sums || !is_float(out.low) || count_of(out.low) == 0) return out;
    const Index terms = n.op == &ops::kSum ? x.low.type.shape.size() / n.type.shape.size()
                                           : n.type.shape[static_cast<int>(n.attrs.integer("axis"))];
    add_roundings(out, eval(n, {magnitude(x)}), terms);
    return out;
  }

  // Of infinite ends, which need not be the values' own.
  static void forget_nans(Range& r) {
    for (std::size_t i = 0; i < r.low.f.size(); ++i)
      if (std::isnan(r.low.f[i]) || std::isnan(r.high.f[i])) forget(r, i);
  }

  // Of n additions, each of which rounds what was added so far.
  static void add_roundings(Range& out, const HostTensor& magnitudes, Index terms) {
    const DType computed = compute_dtype(out.low.type.dtype);
    const double each = unit_roundoff(computed) * static_cast<double>(std::max<Index>(terms - 1, 0));
    for (std::size_t i = 0; i < out.low.f.size(); ++i) {
      const double error = each * magnitudes.f[i];
      if (std::isnan(error) || error == 0) continue;
      out.low.f[i] -= error, out.high.f[i] += error;
    }
    if (std::any_of(magnitudes.f.begin(), magnitudes.f.end(), [](double v) { return std::isinf(v); }))
      forget_nans(out);
  }

  // From the first to the last element that no other certainly exceeds.
  Range extreme_index(const Node& n) {
    const Range& x = operand(n, 0);
    if (any_unknown(x) || !is_float(x.low)) return unknown(n);
    const Shape& shape = x.low.type.shape;
    const int axis = static_cast<int>(n.attrs.integers("axes")[0]);
    Index inner = 1;
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
    const bool largest = n.op == &ops::kArgmax;
    Range out = at_once(n);
    for (std::size_t row = 0; row < count_of(out.low); ++row) {
      const Index first =
          static_cast<Index>(row) / inner * inner * shape[axis] + static_cast<Index>(row) % inner;
      const auto at = [&](Index i) { return static_cast<std::size_t>(first + i * inner); };
      double certain = -kInfinity;
      bool nan = false;
      for (Index i = 0; i < shape[axis]; ++i) {
        certain = std::max(certain, largest ? x.low.f[at(i)] : -x.high.f[at(i)]);
        nan = nan || std::isnan(x.low.f[at(i)]);
      }
      if (nan) {
        forget(out, row);
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
  Range product(const Node& n, bool exact) {
    if (!tilewright::is_float(n.type.dtype)) return exact ? at_once(n) : unknown(n);
    const Range &a = operand(n, 0), &b = operand(n, 1);
    if (any_unknown(a) || any_unknown(b)) return unknown(n);
    const auto middle = [](const Range& r) {
      return mapped(r.low, r.high,
                    [](double low, double high) { return same(low, high) ? low : (low + high) / 2; });
    };
    const auto half = [](const Range& r) {
      return mapped(r.low, r.high,
                    [](double low, double high) { return same(low, high) ? 0 : (high - low) / 2; });
    };
    const HostTensor value = eval(n, {middle(a), middle(b)}), of_a = eval(n, {half(a), magnitude(b)}),
                     of_b = eval(n, {magnitude(a), half(b)});
    Range out{value, value};
    for (std::size_t i = 0; i < value.f.size(); ++i) {
      const double error = of_a.f[i] + of_b.f[i];
      if (error != 0) out.low.f[i] -= error, out.high.f[i] += error;
    }
    if (!exact) forget_nans(out);
    const Shape& shape = a.low.type.shape;
    add_roundings(out, eval(n, {magnitude(a), magnitude(b)}), shape[shape.rank() - 1]);
    return out;
  }

  Range taken(const Node& n) {
    const Range &x = operand(n, 0), &index = operand(n, 1);
    if (any_unknown(index)) return unknown(n);
    Range out = unknown(n);
    std::vector<int> nans(count_of(out.low));
    for (std::int64_t step = 0; step < steps_of(index); ++step) {
      include(out, eval(n, {x.low, tried(index, step)}), nans, step == 0);
      include(out, eval(n, {x.high, tried(index, step)}), nans, false);
    }
    for (std::size_t i = 0; i < nans.size(); ++i)
      if (nans[i] > 0) forget(out, i);
    return out;
  }

  Range scattered(const Node& n) {
    const Range &index = operand(n, 0), &update = operand(n, 1);
    if (!all_exact(index) || (!all_exact(update) && any_unknown(update))) return unknown(n);
    Range out{eval_end(n, &Range::low), eval_end(n, &Range::high)};
    if (is_float(out.low))
      add_roundings(out, eval(n, {index.low, magnitude(update)}), index.low.type.shape.size());
    return out;
  }

  // --- errors of the op itself

  // Sums, differences and products of exact f32 numbers are correctly rounded. Of f64 the oracle itself
  // rounds.
  bool has_no_error(const Node& n, const Range& r, std::size_t i) {
    if (n.op != &ops::kAdd && n.op != &ops::kSub && n.op != &ops::kMul) return false;
    return n.type.dtype != DType::f64 && is_exact(r, i) && is_exact(operand(n, 0), i) &&
           is_exact(operand(n, 1), i) && round_to(DType::f32, r.low.f[i]) == r.low.f[i];
  }

  Range with_error(const Node& n, Range r) {
    if (!is_float(r.low) || test::is_exact(*n.op)) return r;
    const DType computed = compute_dtype(n.type.dtype);
    const double noise = noise_of(n.type.dtype), least = min_normal(computed), most = max_finite(computed);
    for (std::size_t i = 0; i < r.low.f.size(); ++i) {
      double &low = r.low.f[i], &high = r.high.f[i];
      if (std::isnan(low) || has_no_error(n, r, i)) continue;
      if (std::isfinite(low)) low -= noise * std::fabs(low);
      if (std::isfinite(high)) high += noise * std::fabs(high);
      // Subnormal numbers may be flushed, and what rounds up to infinity may be there.
      if (low > 0 && low < least) low = 0;
      if (high < 0 && high > -least) high = 0;
      if (high > most) high = kInfinity;
      if (low < -most) low = -kInfinity;
    }
    return r;
  }

  const ir::Graph& graph_;
  std::vector<Range> ranges_;
};

}  // namespace

double noise_of(DType dtype) {
  if (dtype == DType::f64) return 0x1p-50;
  return std::max(0x1p-22, unit_roundoff(dtype));
}

bool is_exact(const Op& op) {
  static constexpr const Op* kExact[] = {&ops::kNeg,     &ops::kAbs,   &ops::kSign,   &ops::kFloor,
                                         &ops::kCeil,    &ops::kRound, &ops::kTrunc,  &ops::kMinimum,
                                         &ops::kMaximum, &ops::kWhere, &ops::kCast,   &ops::kStopGradient,
                                         &ops::kMax,     &ops::kMin,   &ops::kCummax, &ops::kCummin};
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
      if (low.f[i] == -kInfinity && high.f[i] == kInfinity) continue;
      const bool inside = value >= round_to(dtype, low.f[i]) && value <= round_to(dtype, high.f[i]);
      if (!inside && !(std::isnan(value) && std::isnan(low.f[i])))
        return fmt::format("output {} element {}: {} is not from {} to {}", o, i, value, low.f[i], high.f[i]);
    }
  }
  return "";
}

}  // namespace tilewright::test
