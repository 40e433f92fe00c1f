// Probes: what a device can do at best, measured. Each probe is a small kernel in the dialect of the device's
// backend, compiled and launched through it like any other. One mechanism for `tw devices`, the lab's floors,
// `tw roofline --hw here` and explain().
#pragma once

#include "runtime/device.h"

#include <tilewright/perf/ceiling_file.h>

#include <functional>
#include <string>
#include <string_view>

namespace tilewright::runtime {

struct ProbeOptions {
  double seconds_each = 0.25;  // of timing for each figure and way to reach it; the best way counts
  // Told what is measured next, before each figure.
  std::function<void(std::string_view what)> progress = {};
  std::function<bool()> stop = {};         // asked between samples; true ends the probe with a Failure
  std::string how = "tw devices --probe";  // the command, for the figures' sources
};

// Bandwidths by kind of each cache level and of memory, multiply-add rates, launch latency, as
// perf::from_measured takes them. What the device or its compiler cannot do is left out and named in
// `left_out`.
struct Probed {
  perf::Ceilings ceilings;
  std::vector<std::string> left_out;  // "matrix.f8e4m3: …"
};
Result<Probed> probe(Device& device, const ProbeOptions& options = {});

// Where the ceilings of a device are stored, in a cache folder (BinaryCache::default_directory()): by the
// device's name and size, so that machines may share the folder. Empty when there is no folder.
std::string ceilings_path(const Device& device, const std::string& cache_directory);
// A Failure of kind not_found when the device was never probed here.
Result<perf::Ceilings> stored_ceilings(const Device& device, const std::string& cache_directory);

}  // namespace tilewright::runtime
