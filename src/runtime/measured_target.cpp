#include "runtime/measured_target.h"

namespace tilewright::runtime {

namespace {

// Kernels read and write: a copy is the ceiling they meet.
double copy_rate(const perf::Traffic& traffic, const std::optional<perf::Figure>& otherwise) {
  if (traffic.copy) return traffic.copy->value;
  return otherwise ? otherwise->value : traffic.best();
}

void set_if_known(double& rate, double measured) {
  if (measured > 0) rate = measured;
}

}  // namespace

tile::Target with_ceilings(tile::Target target, const perf::Hardware& ceilings) {
  set_if_known(target.memory_bytes_per_s, copy_rate(ceilings.memory_traffic, ceilings.memory_bytes_per_s));
  if (!ceilings.levels.empty()) {
    const perf::MemoryLevel& last = ceilings.levels.back();
    set_if_known(target.cache_bytes_per_s, copy_rate(last.traffic, last.bytes_per_s));
    // The level before the last is the units' own, where they have one.
    if (const std::size_t count = ceilings.levels.size(); target.unit_cache_bytes > 0 && count > 1) {
      const perf::MemoryLevel& own = ceilings.levels[count - 2];
      set_if_known(target.unit_cache_bytes_per_s, copy_rate(own.traffic, own.bytes_per_s));
    }
  }
  for (const perf::MathRate& rate : ceilings.vector)
    if (rate.dtype == DType::f32) set_if_known(target.flops_per_s, rate.flops_per_s.value);
  for (const perf::MathRate& rate : ceilings.matrix)
    if (rate.dtype == DType::bf16) set_if_known(target.matrix_flops_per_s, rate.flops_per_s.value);
  if (ceilings.launch_s) set_if_known(target.launch_s, ceilings.launch_s->value);
  return target;
}

perf::Hardware rules_of_thumb(const tile::Target& target) {
  const auto figure = [](double value) { return perf::Figure{value, "rule of thumb"}; };
  perf::Hardware h;
  h.name = h.title = target.name;
  h.memory_bytes_per_s = figure(target.memory_bytes_per_s);
  // A copy's two buffers share the cache with what else is alive.
  h.levels.push_back({.name = "cache",
                      .bytes = figure(static_cast<double>(target.cache_bytes) / 2),
                      .bytes_per_s = figure(target.cache_bytes_per_s)});
  const bool gpu = target.kind == tile::TargetKind::cuda;
  h.matrix_beside_vector = gpu;
  for (const DType dtype : {DType::f32, DType::f64, DType::i32})
    h.vector.push_back({dtype, figure(target.flops_per_s)});
  if (target.matrix_flops_per_s > 0) {
    h.matrix.push_back({DType::bf16, figure(target.matrix_flops_per_s)});
    if (gpu)
      for (const DType dtype : {DType::i8, DType::f8e4m3, DType::f8e5m2})
        h.matrix.push_back({dtype, figure(2 * target.matrix_flops_per_s)});
    h.matrix.push_back({DType::f32, figure(target.flops_per_s)});
  }
  return h;
}

}  // namespace tilewright::runtime
