// Pointwise ops of intervals: functions that rise or fall along each operand alone are extreme where every
// operand is, others are mended.
#include "ops/rows.h"
#include "support/interval_tensor.h"

#include <algorithm>
#include <numbers>

namespace tilewright::test {

using ir::HostTensor;
using ir::Node;
using ir::Op;

namespace {

using Operands = std::vector<const IntervalTensor*>;

constexpr double kPi = std::numbers::pi;

bool any_of(const Operands& operands, bool (IntervalTensor::*holds)(std::size_t) const, std::size_t i) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const IntervalTensor* o) { return (o->*holds)(i); });
}
bool all_exact(const Operands& operands, std::size_t i) {
  return std::all_of(operands.begin(), operands.end(),
                     [&](const IntervalTensor* o) { return o->is_exact(i); });
}

// What has other extremes than those at the ends, of one operand from `low` to `high`.
void mend_unary(const Node& n, double low, double high, IntervalTensor& out, std::size_t i) {
  const Op* op = n.op;
  const bool zero = low <= 0 && high >= 0;
  if (op == &ops::kAbs && zero) out.low.f[i] = 0;
  if (op == &ops::kCast && is_bool(n.type.dtype) && zero) out.low.i[i] = 0;
  if (op == &ops::kSin || op == &ops::kCos) {  // no steeper than 1
    out.low.f[i] = std::max(-1.0, out.low.f[i] - (high - low) / 2);
    out.high.f[i] = std::min(1.0, out.high.f[i] + (high - low) / 2);
  }
  if (op == &ops::kTan && std::floor(low / kPi + 0.5) != std::floor(high / kPi + 0.5)) out.forget(i);
  if (op == &ops::kReciprocal && zero) out.forget(i);
}

struct Interval {
  double low, high;
  bool has_zero() const { return low <= 0 && high >= 0; }
};

void mend_binary(const Node& n, Interval a, Interval b, IntervalTensor& out, std::size_t i) {
  const Op* op = n.op;
  if (op == &ops::kMul && n.operands[0] == n.operands[1] && a.has_zero()) out.low.f[i] = 0;
  if ((op == &ops::kEq || op == &ops::kNe) && a.low <= b.high && b.low <= a.high) out.forget(i);
  if (op == &ops::kDiv && b.has_zero()) out.forget(i);
  if (op == &ops::kPow && a.low < 0 && (b.low != b.high || a.high >= 0)) out.forget(i);
  if (op == &ops::kAtan2 && b.low <= 0) out.low.f[i] = -kPi, out.high.f[i] = kPi;
  if (op == &ops::kRem) {
    const auto whole = [](double x, double y) { return std::trunc(x / y); };
    const double times = whole(a.low, b.low);
    const bool alike = !b.has_zero() && times == whole(a.low, b.high) && times == whole(a.high, b.low) &&
                       times == whole(a.high, b.high);
    const double most = std::max(std::fabs(b.low), std::fabs(b.high));
    if (!alike) out.low.f[i] = -most, out.high.f[i] = most;
  }
}

void mend(const Node& n, const Operands& operands, IntervalTensor& out, std::size_t i) {
  if (!operands[0]->is_float() || all_exact(operands, i)) return;
  const auto at = [&](std::size_t o) { return Interval{operands[o]->low.f[i], operands[o]->high.f[i]}; };
  if (operands.size() == 1)
    mend_unary(n, at(0).low, at(0).high, out, i);
  else
    mend_binary(n, at(0), at(1), out, i);
}

// where: both values if the condition is undecided.
IntervalTensor chosen(const Operands& operands) {
  const IntervalTensor &of = *operands[0], &yes = *operands[1], &no = *operands[2];
  IntervalTensor out = yes;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool may_be_no = of.low.i[i] == 0, may_be_yes = of.high.i[i] != 0;
    if (!may_be_no) continue;
    if (out.is_float()) {
      out.low.f[i] = may_be_yes ? std::min(yes.low.f[i], no.low.f[i]) : no.low.f[i];
      out.high.f[i] = may_be_yes ? std::max(yes.high.f[i], no.high.f[i]) : no.high.f[i];
      if (may_be_yes && (std::isnan(yes.low.f[i]) || std::isnan(no.low.f[i]))) out.forget(i);
    } else {
      out.low.i[i] = may_be_yes ? std::min(yes.low.i[i], no.low.i[i]) : no.low.i[i];
      out.high.i[i] = may_be_yes ? std::max(yes.high.i[i], no.high.i[i]) : no.high.i[i];
    }
  }
  return out;
}

}  // namespace

IntervalTensor pointwise_intervals(const Node& node, const Operands& operands) {
  if (node.op == &ops::kWhere) return chosen(operands);
  IntervalTensor out = IntervalTensor::unknown(node.type);
  std::vector<int> nans(out.size());
  std::vector<std::int64_t> at(operands.size(), 0), each;
  for (const IntervalTensor* o : operands) each.push_back(o->tries());
  int tries = 0;
  for (bool more = true; more; ++tries) {
    std::vector<HostTensor> tried;
    tried.reserve(at.size());
    for (std::size_t o = 0; o < at.size(); ++o) tried.push_back(operands[o]->tried(at[o]));
    out.include(evaluate_at(node, tried), tries == 0, nans);
    more = false;
    for (std::size_t o = 0; o < at.size() && !more; ++o) {
      more = ++at[o] < each[o];
      if (!more) at[o] = 0;
    }
  }
  for (std::size_t i = 0; i < nans.size(); ++i) {
    if (nans[i] == tries && all_exact(operands, i))
      out.low.f[i] = out.high.f[i] = std::nan("");
    else if (nans[i] > 0 || any_of(operands, &IntervalTensor::is_unknown, i))
      out.forget(i);
    else
      mend(node, operands, out, i);
  }
  return out;
}

}  // namespace tilewright::test
