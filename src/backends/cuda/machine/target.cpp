// Makes of a device's limits what lowering knows of it.
#include "backends/cuda/machine/target.h"

#include "backends/cuda/machine/fitted.h"

namespace tilewright::cuda {

namespace {

constexpr int kMaxCluster = 8;  // every device with clusters runs them

}  // namespace

tile::Target target_of(const DeviceLimits& limits, const Arch& arch) {
  tile::Target t;
  t.kind = tile::TargetKind::cuda;
  t.name = limits.name;
  t.arch = arch.text();
  t.units = limits.multiprocessors;
  t.vector_bytes = kWidestAccess;
  t.sector_bytes = kSectorBytes;
  t.shared_bytes = limits.shared_bytes_per_block;
  t.max_threads = limits.max_threads_per_block;
  t.max_cluster = limits.clusters ? kMaxCluster : 1;
  t.row_bytes = Index{t.max_threads} * kKeptPerThread * t.max_cluster * 4;
  const double peak = limits.peak_memory_bytes_per_second();
  // Copies reach 0.885 of the pins' rate (H200: 4.25 of 4.8 TB/s).
  t.memory_bytes_per_s = peak > 0 ? 0.885 * peak : limits.compute_major >= 9 ? 4.25e12 : 1.4e12;
  t.cache_bytes_per_s = 2 * t.memory_bytes_per_s;
  t.cache_bytes = limits.l2_bytes;
  t.memory_bytes = limits.memory_bytes;
  const double clock_hz = limits.clock_khz > 0 ? limits.clock_khz * 1e3 : 1.7e9;
  t.flops_per_s = 2.0 * 128 * limits.multiprocessors * clock_hz;
  // Dense 16-bit multiply-adds a cycle: 2048 a multiprocessor in data centres from sm_90 on, else 1024.
  t.matrix_flops_per_s = 2.0 * (limits.compute_major == 9 || limits.compute_major == 10 ? 2048 : 1024) *
                         limits.multiprocessors * clock_hz;
  t.launch_s = 2.5e-6;
  t.together_bytes = kArgumentBytes;
  fill_fitted(t, arch);
  return t;
}

}  // namespace tilewright::cuda
