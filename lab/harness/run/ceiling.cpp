// Floors from ceilings.
#include "harness/run/ceiling.h"

#include <algorithm>
#include <limits>

namespace tilewright::lab {

namespace {

double capacity(const MemoryLevel& level) {
  return level.capacity_bytes > 0 ? level.capacity_bytes : std::numeric_limits<double>::infinity();
}

double working_set(const Work& work) {
  return work.working_set_bytes > 0 ? work.working_set_bytes : work.cost.bytes();
}

// Reads and writes that pair up run at the copy rate; what is left over at the pure rate of its kind.
double memory_us(const Work& work, const MemoryLevel& level) {
  const double paired = std::min(work.cost.bytes_read, work.cost.bytes_written);
  const double reads = work.cost.bytes_read - paired;
  const double writes = work.cost.bytes_written - paired;
  double seconds = 0;
  if (paired > 0) seconds += 2 * paired / level.copy;
  if (reads > 0) seconds += reads / level.read;
  if (writes > 0) seconds += writes / level.write;
  return seconds * 1e6;
}

// Time of one unit's FLOPs. A type without a measured rate takes none: a bound must not be made of guesses.
double unit_us(const perf::FlopsByType& flops, perf::MathUnit unit, const Ceilings& ceilings) {
  double seconds = 0;
  for (DType dtype : kAllDTypes) {
    const auto rate = math_rate(ceilings, unit, dtype);
    if (flops[dtype] > 0 && rate) seconds += flops[dtype] / *rate;
  }
  return seconds * 1e6;
}

// The longer of the two units, since they may work at the same time.
double math_us(const Work& work, const Ceilings& ceilings) {
  return std::max(unit_us(work.cost.matrix_by_rate(), perf::MathUnit::matrix, ceilings),
                  unit_us(work.cost.vector, perf::MathUnit::vector, ceilings));
}

bool memory_bounds(const Work& work, const Ceilings& ceilings) {
  return !ceilings.levels.empty() && work.cost.bytes() > 0;
}

// The share of the traffic that each level serves when it holds as much of the working set as it can.
std::vector<double> served_shares(const Work& work, const Ceilings& ceilings) {
  std::vector<double> shares;
  double left = 1;  // share of the traffic that no faster level serves
  for (const MemoryLevel& level : ceilings.levels) {
    const bool last = &level == &ceilings.levels.back();
    // Caches are nested: the first `held` of the working set is in this level or a faster one.
    const double held = last ? 1.0 : std::min(1.0, capacity(level) / working_set(work));
    shares.push_back(std::max(0.0, held - (1 - left)));
    left -= shares.back();
  }
  return shares;
}

// The best time of the traffic, so shared.
double best_memory_us(const Work& work, const Ceilings& ceilings) {
  const std::vector<double> shares = served_shares(work, ceilings);
  double seconds = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const MemoryLevel& level = ceilings.levels[i];
    seconds += shares[i] * work.cost.bytes() / std::max({level.read, level.write, level.copy});
  }
  return seconds * 1e6;
}

void add_memory_figures(const Work& work, const Ceilings& ceilings, std::vector<std::string>& figures) {
  const std::vector<double> shares = served_shares(work, ceilings);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    const std::string& name = ceilings.levels[i].name;
    const std::string prefix = name == "memory" ? "memory." : "level." + name + ".";
    for (const char* kind : {"read", "write", "copy"}) figures.push_back(prefix + kind + "_bytes_per_s");
  }
}

void add_math_figures(const perf::FlopsByType& flops, std::string_view unit,
                      std::vector<std::string>& figures) {
  for (const DType dtype : kAllDTypes)
    if (flops[dtype] > 0) figures.push_back(std::string(unit) + std::string(name(dtype)));
}

}  // namespace

Work vector_work(double flops, DType dtype, double bytes_read, double bytes_written,
                 double working_set_bytes) {
  Work work;
  work.cost.vector[dtype] = flops;
  work.cost.bytes_read = bytes_read;
  work.cost.bytes_written = bytes_written;
  work.working_set_bytes = working_set_bytes;
  return work;
}

std::optional<double> math_rate(const Ceilings& ceilings, perf::MathUnit unit, DType dtype) {
  for (const MathRate& rate : ceilings.math) {
    if (rate.unit == unit && rate.dtype == dtype && rate.flops_per_s > 0) return rate.flops_per_s;
  }
  return std::nullopt;
}

std::optional<Floor> floor_of(const Work& work, const Ceilings& ceilings) {
  const double math = math_us(work, ceilings);
  if (!memory_bounds(work, ceilings)) {
    return math > 0 ? std::optional(Floor{math, false, ""}) : std::nullopt;
  }
  const auto level = std::find_if(ceilings.levels.begin(), ceilings.levels.end() - 1,
                                  [&](const MemoryLevel& l) { return working_set(work) <= capacity(l); });
  const double traffic = memory_us(work, *level);
  return Floor{std::max(traffic, math), traffic >= math, level->name};
}

std::optional<double> impossible_below_us(const Work& work, const Ceilings& ceilings) {
  const double math = math_us(work, ceilings);
  if (!memory_bounds(work, ceilings)) return math > 0 ? std::optional(math) : std::nullopt;
  return std::max(best_memory_us(work, ceilings), math);
}

bool beats_ceilings(const Work& work, const Ceilings& ceilings, double us, double slack) {
  const auto least = impossible_below_us(work, ceilings);
  return least && us * slack < *least;
}

std::vector<std::string> beaten_figures(const Work& work, const Ceilings& ceilings, double us, double slack) {
  std::vector<std::string> figures;
  const auto beaten = [&](double least_us) { return us * slack < least_us; };
  if (memory_bounds(work, ceilings) && beaten(best_memory_us(work, ceilings)))
    add_memory_figures(work, ceilings, figures);
  const perf::FlopsByType matrix = work.cost.matrix_by_rate();
  if (beaten(unit_us(matrix, perf::MathUnit::matrix, ceilings))) {
    add_math_figures(matrix, "matrix.", figures);
    add_math_figures(matrix, "vector.", figures);  // which stands in where there is no matrix unit
    if (matrix[DType::f32] > 0 && math_rate(ceilings, perf::MathUnit::matrix, DType::bf16))
      figures.emplace_back("matrix.bf16");
  }
  if (beaten(unit_us(work.cost.vector, perf::MathUnit::vector, ceilings)))
    add_math_figures(work.cost.vector, "vector.", figures);
  return figures;
}

Ceilings best_of(const Ceilings& known, const Ceilings& latest) {
  Ceilings best = latest;
  for (const MemoryLevel& old : known.levels) {
    const auto level = std::find_if(best.levels.begin(), best.levels.end(),
                                    [&](const MemoryLevel& l) { return l.name == old.name; });
    if (level == best.levels.end()) continue;  // a level that the device no longer tells of
    level->read = std::max(level->read, old.read);
    level->write = std::max(level->write, old.write);
    level->copy = std::max(level->copy, old.copy);
  }
  for (const MathRate& old : known.math) {
    const auto rate = std::find_if(best.math.begin(), best.math.end(), [&](const MathRate& m) {
      return m.unit == old.unit && m.dtype == old.dtype;
    });
    if (rate == best.math.end())
      best.math.push_back(old);
    else
      rate->flops_per_s = std::max(rate->flops_per_s, old.flops_per_s);
  }
  return best;
}

Ceilings ceilings_of(const perf::Hardware& hardware, const std::string& source) {
  Ceilings ceilings{.source = hardware.title + ", " + source};
  const auto by_kind = [](std::string level, double capacity, const perf::Traffic& traffic, double rate) {
    const auto or_rate = [&](const auto& figure) { return figure ? figure->value : rate; };
    return MemoryLevel{std::move(level), capacity, or_rate(traffic.read), or_rate(traffic.write),
                       or_rate(traffic.copy)};
  };
  for (const perf::MemoryLevel& level : hardware.levels) {
    if (!level.bytes_per_s) continue;
    ceilings.levels.push_back(
        by_kind(level.name, level.bytes.value * level.instances, level.traffic, level.bytes_per_s->value));
  }
  ceilings.levels.push_back(by_kind("memory", 0, hardware.memory_traffic, hardware.memory_bytes_per_s.value));
  for (const auto& rate : hardware.matrix) {
    ceilings.math.push_back({perf::MathUnit::matrix, rate.dtype, rate.flops_per_s.value});
  }
  for (const auto& rate : hardware.vector) {
    ceilings.math.push_back({perf::MathUnit::vector, rate.dtype, rate.flops_per_s.value});
    // Products of a type that matrix units do not take exactly are made of the same multiply-adds, or of
    // products of f32's parts.
    if ((rate.dtype == DType::f32 || rate.dtype == DType::f64) &&
        !math_rate(ceilings, perf::MathUnit::matrix, rate.dtype))
      ceilings.math.push_back({perf::MathUnit::matrix, rate.dtype,
                               perf::rate(hardware, perf::MathUnit::matrix, rate.dtype).flops_per_s});
  }
  return ceilings;
}

}  // namespace tilewright::lab
