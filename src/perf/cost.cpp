// Adding up and printing costs.
#include <tilewright/perf/cost.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tilewright::perf {

double FlopsByType::total() const {
  double sum = 0;
  for (double count : count_) sum += count;
  return sum;
}

FlopsByType& FlopsByType::operator+=(const FlopsByType& other) {
  for (std::size_t i = 0; i < count_.size(); ++i) count_[i] += other.count_[i];
  return *this;
}

FlopsByType& FlopsByType::operator*=(double factor) {
  for (double& count : count_) count *= factor;
  return *this;
}

FlopsByType Cost::matrix_by_rate() const {
  FlopsByType flops = matrix;
  flops[DType::f32] -= tf32;
  flops[DType::bf16] += 2 * tf32;
  return flops;
}

Cost& Cost::operator+=(const Cost& other) {
  matrix += other.matrix;
  tf32 += other.tf32;
  vector += other.vector;
  special_ops += other.special_ops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  link_bytes += other.link_bytes;
  return *this;
}

Cost& Cost::operator*=(double factor) {
  matrix *= factor;
  tf32 *= factor;
  vector *= factor;
  special_ops *= factor;
  bytes_read *= factor;
  bytes_written *= factor;
  link_bytes *= factor;
  return *this;
}

std::string with_prefix(double value) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} ", value);
  constexpr std::string_view kPrefixes[] = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  int step = static_cast<int>(std::floor(std::log10(std::abs(value)) / 3));
  // 999.6 would print as 1e+03 with three digits: it belongs to the next prefix.
  if (std::abs(value) / std::pow(1000.0, step) >= 999.5) ++step;
  step = std::clamp(step, -4, 6);
  return fmt::format("{:.3g} {}", value / std::pow(1000.0, step), kPrefixes[step + 4]);
}

namespace {
std::string rstrip(std::string text) {
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}
}  // namespace

std::string to_string(const Cost& cost) {
  std::string work;
  const auto add = [&work](const std::string& part) { work += (work.empty() ? "" : " + ") + part; };
  for (DType dtype : kAllDTypes) {
    const double flops = cost.matrix[dtype];
    if (flops != 0) add(fmt::format("{}FLOP {} dot", with_prefix(flops), name(dtype)));
  }
  for (DType dtype : kAllDTypes) {
    const double flops = cost.vector[dtype];
    if (flops != 0) add(fmt::format("{}FLOP {}", with_prefix(flops), name(dtype)));
  }
  if (cost.special_ops != 0) add(fmt::format("{} special", rstrip(with_prefix(cost.special_ops))));
  const auto moved = [&work](double bytes, std::string_view how) {
    if (bytes != 0) work += fmt::format("{}{}B {}", work.empty() ? "" : ", ", with_prefix(bytes), how);
  };
  moved(cost.bytes_read, "read");
  moved(cost.bytes_written, "written");
  moved(cost.link_bytes, "tma_store");
  return work.empty() ? "nothing" : work;
}

}  // namespace tilewright::perf
