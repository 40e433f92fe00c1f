// Usual devices: data sheets.
#include "backends/cuda/machine/limits.h"

#include <fmt/format.h>

namespace tilewright::cuda {

double DeviceLimits::peak_memory_bytes_per_second() const {
  return 2e3 * memory_clock_khz * memory_bus_bits / 8;
}

std::string to_string(const DeviceLimits& l) {
  return fmt::format(
      "{} ({}): {} SMs at {:.2f} GHz, {:.1f} GiB at {:.0f} GB/s, L2 {} KiB, {} KiB shared a block, {} KiB an "
      "SM",
      l.name, l.arch().text(), l.multiprocessors, l.clock_khz * 1e-6,
      static_cast<double>(l.memory_bytes) / (1ull << 30), l.peak_memory_bytes_per_second() * 1e-9,
      l.l2_bytes / 1024, l.shared_bytes_per_block / 1024, l.shared_bytes_per_multiprocessor / 1024);
}

DeviceLimits usual_limits(const Arch& arch) {
  struct Usual {
    int major, minor;
    const char* name;
    int multiprocessors, shared_kib, l2_mib, memory_gib;
    int clock_mhz = 0, memory_mhz = 0, bus_bits = 0;
  };
  // Data sheets of NVIDIA; the H200 as its driver tells it (580.159, 2026-11-24), so that what is planned
  // without a device is what one gets. The last row that is not past the capability holds for it.
  static constexpr Usual kUsual[] = {
      {8, 0, "A100", 108, 163, 40, 80},    {8, 6, "RTX 3090", 82, 99, 6, 24},
      {8, 9, "RTX 4090", 128, 99, 72, 24}, {9, 0, "H200", 132, 227, 60, 140, 1980, 3134, 6144},
      {10, 0, "B200", 148, 227, 126, 180}, {12, 0, "RTX 5090", 170, 99, 96, 32},
  };
  const Usual* usual = kUsual;
  for (const Usual& u : kUsual)
    if (u.major < arch.major || (u.major == arch.major && u.minor <= arch.minor)) usual = &u;
  DeviceLimits l;
  l.name = fmt::format("no device ({})", usual->name);
  l.compute_major = arch.major;
  l.compute_minor = arch.minor;
  l.max_threads_per_block = 1024;
  l.registers_per_multiprocessor = 65536;
  l.multiprocessors = usual->multiprocessors;
  l.shared_bytes_per_block = usual->shared_kib << 10;
  l.l2_bytes = usual->l2_mib << 20;
  l.memory_bytes = std::int64_t{usual->memory_gib} << 30;
  l.clock_khz = usual->clock_mhz * 1000;
  l.memory_clock_khz = usual->memory_mhz * 1000;
  l.memory_bus_bits = usual->bus_bits;
  l.clusters = arch.has_clusters();
  return l;
}

}  // namespace tilewright::cuda
