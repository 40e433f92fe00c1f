// What the machine can do at most, measured by its probes, and what that makes of a workload: its floor in
// time.
#pragma once

#include <tilewright/perf/cost.h>
#include <tilewright/perf/hardware.h>

#include <optional>
#include <string>
#include <vector>

namespace tilewright::lab {

// Bandwidths of one level of the memory hierarchy, in bytes per second; a copy counts its reads and its
// writes.
struct MemoryLevel {
  std::string name;           // "L3", "memory"
  double capacity_bytes = 0;  // 0: unlimited (the last level)
  double read = 0, write = 0, copy = 0;
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct MathRate {
  perf::MathUnit unit = perf::MathUnit::vector;
  DType dtype = DType::f32;
  double flops_per_s = 0;  // a multiply-add is two
  friend bool operator==(const MathRate&, const MathRate&) = default;
};

struct Ceilings {
  std::vector<MemoryLevel> levels;  // fastest first; empty: not measured
  std::vector<MathRate> math;
  std::string source;  // "tw devices --probe, 2026-11-21"
  friend bool operator==(const Ceilings&, const Ceilings&) = default;
};

// What one iteration of a workload must do, whoever does it: its arithmetic, and the compulsory traffic, each
// input byte once.
struct Work {
  perf::Cost cost;
  // All the memory the iterations touch between two uses of the same bytes: rotated copies included. Decides
  // which level the data can be resident in. 0: what one iteration reads and writes.
  double working_set_bytes = 0;
  friend bool operator==(const Work&, const Work&) = default;
};

// Arithmetic of one type outside `dot`, with its traffic: the common case.
Work vector_work(double flops, DType dtype, double bytes_read, double bytes_written,
                 double working_set_bytes = 0);

// The least time of one iteration on this machine by the roofline: max(FLOPs / peak, bytes / bandwidth).
struct Floor {
  double us = 0;
  bool memory_bound = true;
  std::string level;  // the memory level the bandwidth is of
};
// Empty when the ceilings that bound the work were not measured.
std::optional<Floor> floor_of(const Work& work, const Ceilings& ceilings);

// The least time that physics allows: like the floor, but each pass finds as much of the working set in each
// cache as fits there, and each level runs at the best bandwidth measured for it. A median below it, by more
// than the ceilings' own uncertainty, is an error of measurement and never a record.
std::optional<double> impossible_below_us(const Work& work, const Ceilings& ceilings);

// Whether `us` for one iteration is less than that, by more than the factor `slack`.
bool beats_ceilings(const Work& work, const Ceilings& ceilings, double us, double slack);
// The figures, by the keys of perf::Measurement ("memory.copy_bytes_per_s", "vector.f32"), that `us` is too
// fast for: each must be higher, or `us` is an error.
std::vector<std::string> beaten_figures(const Work& work, const Ceilings& ceilings, double us, double slack);

// The larger of each figure: a ceiling is the best seen, not the last seen. The source is `latest`'s.
Ceilings best_of(const Ceilings& known, const Ceilings& latest);

// The rate of a unit for a type; empty when it was not measured.
std::optional<double> math_rate(const Ceilings& ceilings, perf::MathUnit unit, DType dtype);

// Ceilings of published or stored figures. A level without rates by kind has one for reads, writes and
// copies.
Ceilings ceilings_of(const perf::Hardware& hardware, const std::string& source = "published");

}  // namespace tilewright::lab
