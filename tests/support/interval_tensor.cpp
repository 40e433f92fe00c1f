// See interval_tensor.h.
#include "support/interval_tensor.h"

#include <algorithm>

namespace tilewright::test {

using ir::HostTensor;

namespace {

constexpr std::int64_t kMostTries = 4;  // of an integer

HostTensor mapped(HostTensor t, const HostTensor& other, double (*fn)(double, double)) {
  for (std::size_t i = 0; i < t.f.size(); ++i) t.f[i] = fn(t.f[i], other.f[i]);
  return t;
}

}  // namespace

IntervalTensor IntervalTensor::unknown(const ir::Type& type) {
  IntervalTensor out{{.type = type}, {.type = type}};
  const auto count = static_cast<std::size_t>(type.shape.size());
  for (HostTensor* t : {&out.low, &out.high})
    if (out.is_float())
      t->f.assign(count, 0);
    else
      t->i.assign(count, 0);
  for (std::size_t i = 0; i < out.size(); ++i) out.forget(i);
  return out;
}

bool IntervalTensor::is_exact(std::size_t i) const {
  return is_float() ? same(low.f[i], high.f[i]) : low.i[i] == high.i[i];
}

bool IntervalTensor::all_exact() const {
  for (std::size_t i = 0; i < size(); ++i)
    if (!is_exact(i)) return false;
  return true;
}

bool IntervalTensor::is_unknown(std::size_t i) const {
  if (is_float()) return low.f[i] == -kEndless && high.f[i] == kEndless;
  return static_cast<std::uint64_t>(high.i[i]) - static_cast<std::uint64_t>(low.i[i]) >=
         static_cast<std::uint64_t>(kMostTries);
}

bool IntervalTensor::any_unknown() const {
  for (std::size_t i = 0; i < size(); ++i)
    if (is_unknown(i)) return true;
  return false;
}

void IntervalTensor::forget(std::size_t i) {
  const DType dtype = low.type.dtype;
  if (is_float()) {
    low.f[i] = -kEndless, high.f[i] = kEndless;
  } else if (is_bool(dtype)) {
    low.i[i] = 0, high.i[i] = 1;
  } else {
    low.i[i] = float_to_int(dtype, -kEndless), high.i[i] = float_to_int(dtype, kEndless);
  }
}

void IntervalTensor::forget_nans() {
  for (std::size_t i = 0; i < low.f.size(); ++i)
    if (std::isnan(low.f[i]) || std::isnan(high.f[i])) forget(i);
}

std::int64_t IntervalTensor::tries() const {
  if (is_float()) return all_exact() ? 1 : 2;
  std::int64_t most = 1;
  for (std::size_t i = 0; i < size(); ++i)
    if (!is_unknown(i)) most = std::max(most, high.i[i] - low.i[i] + 1);
  return most;
}

HostTensor IntervalTensor::tried(std::int64_t number) const {
  if (number == 0) return low;
  if (is_float()) return high;
  HostTensor out = low;
  for (std::size_t i = 0; i < size(); ++i)
    if (!is_unknown(i)) out.i[i] = std::min(low.i[i] + number, high.i[i]);
  return out;
}

HostTensor IntervalTensor::magnitude() const {
  return mapped(low, high, [](double a, double b) { return std::max(std::fabs(a), std::fabs(b)); });
}
HostTensor IntervalTensor::middle() const {
  return mapped(low, high, [](double a, double b) { return same(a, b) ? a : (a + b) / 2; });
}
HostTensor IntervalTensor::half() const {
  return mapped(low, high, [](double a, double b) { return same(a, b) ? 0 : (b - a) / 2; });
}

void IntervalTensor::include(const HostTensor& value, bool first, std::vector<int>& nans) {
  for (std::size_t i = 0; i < value.f.size(); ++i) {
    if (std::isnan(value.f[i])) {
      ++nans[i];
      continue;
    }
    const bool alone = first || nans[i] > 0;  // with NaN it is forgotten
    low.f[i] = alone ? value.f[i] : std::min(low.f[i], value.f[i]);
    high.f[i] = alone ? value.f[i] : std::max(high.f[i], value.f[i]);
  }
  for (std::size_t i = 0; i < value.i.size(); ++i) {
    low.i[i] = first ? value.i[i] : std::min(low.i[i], value.i[i]);
    high.i[i] = first ? value.i[i] : std::max(high.i[i], value.i[i]);
  }
}

HostTensor evaluate_at(const ir::Node& node, const std::vector<HostTensor>& operands) {
  std::vector<const HostTensor*> pointers;
  pointers.reserve(operands.size());
  for (const HostTensor& o : operands) pointers.push_back(&o);
  return node.op->eval(pointers, node.attrs, node.type);
}

}  // namespace tilewright::test
