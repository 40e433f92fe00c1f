// The arithmetic of bounds.
#include <tilewright/perf/roofline.h>

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::perf {

namespace {

double time_of(const FlopsByType& flops, MathUnit unit, const Hardware& hardware,
               std::vector<std::string>& notes) {
  double seconds = 0;
  for (DType dtype : kAllDTypes) {
    if (flops[dtype] == 0) continue;
    const Rate r = rate(hardware, unit, dtype);
    if (!r.substitute.empty()) notes.push_back(r.substitute);
    seconds += flops[dtype] / r.flops_per_s;
  }
  return seconds;
}

double link_rate(const Hardware& hardware) {
  if (hardware.link_bytes_per_s) return hardware.link_bytes_per_s->value;
  throw Error(fmt::format("{} has no link rate; give one in bytes per second", hardware.name));
}

Limit limit_of(const Bounds& b) {
  if (b.lower_s == 0) return Limit::nothing;
  // In a tie the machine's math is busy all the time: that is compute-bound.
  if (b.t_math_s == b.lower_s) return Limit::compute;
  if (b.t_special_s == b.lower_s) return Limit::special;
  return b.t_link_s == b.lower_s ? Limit::link : Limit::memory;
}

}  // namespace

std::string_view name(Limit limit) {
  switch (limit) {
    case Limit::nothing:
      return "nothing";
    case Limit::compute:
      return "compute";
    case Limit::special:
      return "special functions";
    case Limit::memory:
      return "memory";
    case Limit::link:
      return "link";
  }
  return "?";
}

Bounds bounds(const Cost& cost, const Hardware& hardware) {
  Bounds b;
  b.t_matrix_s = time_of(cost.matrix_by_rate(), MathUnit::matrix, hardware, b.notes);
  b.t_vector_s = time_of(cost.vector, MathUnit::vector, hardware, b.notes);
  b.t_math_s =
      hardware.matrix_beside_vector ? std::max(b.t_matrix_s, b.t_vector_s) : b.t_matrix_s + b.t_vector_s;
  if (hardware.special_ops_per_s) b.t_special_s = cost.special_ops / hardware.special_ops_per_s->value;
  b.t_memory_s = cost.bytes() / hardware.memory_bytes_per_s.value;
  if (cost.link_bytes > 0) b.t_link_s = cost.link_bytes / link_rate(hardware);

  const double traffic = cost.link_bytes > 0 ? cost.link_bytes : cost.bytes();
  b.t_comms_s = cost.link_bytes > 0 ? b.t_link_s : b.t_memory_s;
  b.lower_s = std::max({b.t_math_s, b.t_special_s, b.t_memory_s, b.t_link_s});
  b.upper_s = b.t_matrix_s + b.t_vector_s + b.t_special_s + b.t_memory_s + b.t_link_s;
  b.intensity = traffic > 0 ? cost.flops() / traffic : 0;
  if (b.t_math_s > 0) {
    const double bandwidth = cost.link_bytes > 0 ? link_rate(hardware) : hardware.memory_bytes_per_s.value;
    b.ridge = cost.flops() / b.t_math_s / bandwidth;
  }
  b.limit = limit_of(b);
  return b;
}

}  // namespace tilewright::perf
