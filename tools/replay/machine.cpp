#include "replay/machine.h"

#include "backends/cpu/candidates.h"
#include "backends/cpu/machine/fitted.h"
#include "backends/cpu/print/printer.h"
#include "backends/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace tilewright::replay {

namespace {

// Eight cores with AVX-512, as many servers' shares of a socket; the rates are host_tile_target()'s rules of
// thumb (backends/cpu/host/host.cpp).
tile::Target cpu_target() {
  constexpr int kCores = 8, kVectorBytes = 64;
  tile::Target target{.kind = tile::TargetKind::cpu,
                      .name = "8 cores, avx512",
                      .arch = "avx512",
                      .units = kCores,
                      .vector_bytes = kVectorBytes,
                      .row_bytes = Index{512} << 10,
                      .memory_bytes_per_s = kCores * 20e9,
                      .cache_bytes_per_s = kCores * 40e9,
                      .cache_bytes = Index{32} << 20,
                      .unit_cache_bytes_per_s = kCores * 120e9,
                      .unit_cache_bytes = kCores * (Index{1} << 20),
                      .flops_per_s = kCores * 2.0 * kVectorBytes / 4 * 3e9};
  cpu::fill_fitted(target);
  target.predicted_us = cpu::predicted_us;
  return target;
}

Machine cpu_machine() {
  Machine out{.name = "cpu", .target = cpu_target()};
  out.candidates = [target = out.target](const tile::Kernel& kernel) {
    return cpu::list_candidates(kernel, target);
  };
  out.print = [lanes = out.target.vector_bytes / 4](const tile::Kernel& kernel,
                                                    const tile::Schedule& schedule) {
    return cpu::print_kernel(kernel, schedule, lanes);
  };
  return out;
}

Machine gpu_machine(const std::string& architecture) {
  const std::shared_ptr<backends::Backend> backend =
      cuda::CudaBackend::open({.compile_only = architecture}).value();
  return {.name = architecture,
          .target = backend->target(),
          .candidates = [backend](const tile::Kernel& kernel) { return backend->candidates(kernel); },
          .print = [backend](const tile::Kernel& kernel,
                             const tile::Schedule& schedule) { return backend->print(kernel, schedule); }};
}

}  // namespace

std::vector<std::string> machine_names() { return {"cpu", "sm_80", "sm_90a"}; }

Machine make_machine(const std::string& name) {
  if (name == "cpu") return cpu_machine();
  for (const std::string& known : machine_names())
    if (name == known) return gpu_machine(name);
  throw Error(fmt::format("no target {}: there are {}", name, fmt::join(machine_names(), ", ")));
}

}  // namespace tilewright::replay
