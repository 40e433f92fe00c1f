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
  }
  for (const perf::MathRate& rate : ceilings.vector)
    if (rate.dtype == DType::f32) set_if_known(target.flops_per_s, rate.flops_per_s.value);
  for (const perf::MathRate& rate : ceilings.matrix)
    if (rate.dtype == DType::bf16) set_if_known(target.matrix_flops_per_s, rate.flops_per_s.value);
  if (ceilings.launch_s) set_if_known(target.launch_s, ceilings.launch_s->value);
  return target;
}

}  // namespace tilewright::runtime
