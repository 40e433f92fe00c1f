// The device's own time by CUPTI, NVIDIA's tracing library: when each kernel and copy began and ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "harness/run/clock.h"

namespace tilewright::lab {

// A span of time in which the device was at work, in nanoseconds.
struct Span {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

// Microseconds in which at least one of the spans went on: kernels that overlap count once, gaps do not
// count.
double busy_us(std::vector<Span> spans);

// Microseconds of device work between start() and stop_us(), gaps left out. `synchronize` waits for the
// device. A Failure says why there is no such clock here: CUPTI is not installed, or does not take our calls.
// One at a time: CUPTI is one for the process.
Result<std::shared_ptr<Timer>> open_device_trace(std::function<Status()> synchronize);

// The times of one of CUPTI's records of a kernel, a copy or a fill.
Span span_of_record(const void* record);

}  // namespace tilewright::lab
