// Opens what pairs run on: a device of the tensor library with its clock.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <memory>

#include "harness/run/workload.h"

namespace tilewright::lab {

// A device and the Context that owns it. Tensors and instances made on it must not outlive it.
struct OpenDevice {
  std::unique_ptr<Context> context;
  LabDevice device;
};

// Throws Error when the device cannot be opened. `device.ceilings` stay empty: the caller measures or reads
// them. A device that cannot be traced is timed by its events.
OpenDevice open_lab_device(const ContextOptions& options, DeviceTime device_time = DeviceTime::events);

// Bytes of the device's last-level cache.
double cache_bytes(const LabDevice& device);

}  // namespace tilewright::lab
