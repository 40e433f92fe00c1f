// Floors from ceilings.
#include "harness/ceiling.h"

#include <algorithm>
#include <limits>

namespace tilewright::lab {

namespace {

double capacity(const MemoryLevel& level) {
  return level.capacity_bytes > 0 ? level.capacity_bytes : std::numeric_limits<double>::infinity();
}

double working_set(const Work& work) { return work.working_set_bytes > 0 ? work.working_set_bytes : work.bytes(); }

// Reads and writes that pair up run at the copy rate; what is left over at the pure rate of its kind.
double memory_us(const Work& work, const MemoryLevel& level) {
  const double paired = std::min(work.bytes_read, work.bytes_written);
  const double reads = work.bytes_read - paired;
  const double writes = work.bytes_written - paired;
  double seconds = 0;
  if (paired > 0) seconds += 2 * paired / level.copy;
  if (reads > 0) seconds += reads / level.read;
  if (writes > 0) seconds += writes / level.write;
  return seconds * 1e6;
}

// Infinity when no rate of this dtype was measured, which makes the FLOPs free: then memory alone bounds the work.
double peak_flops(const Work& work, const Ceilings& ceilings) {
  for (const MathRate& rate : ceilings.math) {
    if (rate.dtype == work.math && rate.flops_per_s > 0) return rate.flops_per_s;
  }
  return std::numeric_limits<double>::infinity();
}

bool bounded(const Work& work, const Ceilings& ceilings) { return !ceilings.levels.empty() && work.bytes() > 0; }

}  // namespace

std::optional<Floor> floor_of(const Work& work, const Ceilings& ceilings) {
  const double math_us = work.flops / peak_flops(work, ceilings) * 1e6;
  if (!bounded(work, ceilings)) {
    if (math_us > 0) return Floor{math_us, false, ""};
    return std::nullopt;
  }
  const auto level = std::find_if(ceilings.levels.begin(), ceilings.levels.end() - 1,
                                  [&](const MemoryLevel& l) { return working_set(work) <= capacity(l); });
  const double traffic_us = memory_us(work, *level);
  return Floor{std::max(traffic_us, math_us), traffic_us >= math_us, level->name};
}

std::optional<double> impossible_below_us(const Work& work, const Ceilings& ceilings) {
  const double math_us = work.flops / peak_flops(work, ceilings) * 1e6;
  if (!bounded(work, ceilings)) return math_us > 0 ? std::optional(math_us) : std::nullopt;
  double seconds = 0;
  double fraction_left = 1;  // of the traffic, not served by a faster level
  double in_faster = 0;      // share of the working set that faster levels hold
  for (const MemoryLevel& level : ceilings.levels) {
    const double held = std::min(1.0, capacity(level) / working_set(work));
    const bool last = &level == &ceilings.levels.back();
    const double served = last ? fraction_left : std::min(fraction_left, std::max(0.0, held - in_faster));
    in_faster = std::max(in_faster, held);
    seconds += served * work.bytes() / std::max({level.read, level.write, level.copy});
    fraction_left -= served;
  }
  return std::max(seconds * 1e6, math_us);
}

}  // namespace tilewright::lab
