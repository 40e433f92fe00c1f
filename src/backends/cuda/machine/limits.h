// DeviceLimits: what a device is, in numbers.
#pragma once

#include "backends/cuda/machine/arch.h"

#include <cstdint>
#include <string>

namespace tilewright::cuda {

// What the device can hold and how fast its clocks are, as the driver reports it.
struct DeviceLimits {
  std::string name;
  std::string pci_bus_id;  // "0000:0f:00.0", as in /sys/bus/pci/devices
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;
  int registers_per_block = 0;
  int registers_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;           // the most that a kernel may opt in to
  int shared_bytes_per_multiprocessor = 0;  // shared by its resident blocks
  int shared_bytes_reserved_per_block = 0;  // taken by the system from each block's share
  int l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int clock_khz = 0;         // highest SM clock; 0 where the driver no longer tells
  int memory_clock_khz = 0;  // 0 where the driver no longer tells
  int memory_bus_bits = 0;
  bool clusters = false;

  Arch arch() const { return Arch::of_device(compute_major, compute_minor); }
  // Double data rate on the whole bus, bytes per second; 0 where the clock is not known.
  double peak_memory_bytes_per_second() const;
  friend bool operator==(const DeviceLimits&, const DeviceLimits&) = default;
};
std::string to_string(const DeviceLimits& limits);

// The limits of the architecture's usual device, for compiling where no device is present.
DeviceLimits usual_limits(const Arch& arch);

}  // namespace tilewright::cuda
