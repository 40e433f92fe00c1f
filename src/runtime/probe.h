// Probes: what a device can do at best, measured. Each probe is a small kernel in the dialect of the device's
// backend, compiled and launched through it like any other. One mechanism for `tw devices`, the lab's floors,
// `tw roofline --hw here` and explain().
//
// A probe beside other work finds too little. On the CPU it says so (`Probed::busy`, by runtime/other_work.h)
// and is not stored; of those that are, the best of each figure is kept (tilewright/perf/best_ceilings.h).
// Whether others use a GPU is not known here.
#pragma once

#include "runtime/device.h"

#include <tilewright/perf/ceiling_file.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tilewright::runtime {

struct ProbeOptions {
  double seconds_each = 0.25;  // of timing for each figure and way to reach it; the best way counts
  double sample_us = 3000;  // at least, of one sample: long against a clock's resolution and a launch's cost
  // Told what is measured next, before each figure.
  std::function<void(std::string_view what)> progress = {};
  std::function<bool()> stop = {};         // asked between samples; true ends the probe with a Failure
  std::string how = "tw devices --probe";  // the command, for the figures' sources
  // Which figures to measure, by key ("memory.copy_bytes_per_s", "vector.f32"); none given: all.
  std::function<bool(std::string_view figure)> wanted = {};
};

// Bandwidths by kind of each cache level and of memory, multiply-add rates, launch latency, as
// perf::from_measured takes them. What the device or its compiler cannot do is left out and named in
// `left_out`.
struct Probed {
  perf::Ceilings ceilings;
  std::vector<std::string> left_out;  // "matrix.f8e4m3: …"
  std::string busy;  // "others took 43 % of …"; each figure's source says so, too. Empty: quiet
};
Result<Probed> probe(Device& device, const ProbeOptions& options = {});

// Probes of one device again and again, beside other work: their compiled kernels and their memory are kept
// from one to the next.
class Prober {
 public:
  explicit Prober(Device& device);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  Result<Probed> probe(const ProbeOptions& options);

 private:
  std::unique_ptr<class ProbeBench> bench_;
};

// Where the ceilings of a device are stored, in a cache folder (BinaryCache::default_directory()): by the
// device's name and size, so that machines may share the folder. Empty when there is no folder.
std::string ceilings_path(const Device& device, const std::string& cache_directory);
// A Failure of kind not_found when the device was never probed here.
Result<perf::Ceilings> stored_ceilings(const Device& device, const std::string& cache_directory);
// What was probed joins what is stored at `path` (ceilings_path): of each figure the best seen; a file that
// cannot be read is written anew. Returns what is stored now.
Result<perf::Ceilings> store_best(const perf::Ceilings& probed, const std::string& path);

}  // namespace tilewright::runtime
