// The cost model's few numbers: arithmetic at the cores' rate, bytes at the memory's or the caches'.
#include "backends/cpu/candidates.h"

#include "backends/cpu/machine/fitted.h"

#include <tilewright/tile/cost.h>
#include <tilewright/tile/loop_rounds.h>

#include <algorithm>

namespace tilewright::cpu {

namespace {

std::vector<std::int64_t> assumed_scalars(const tile::Kernel& kernel) {
  std::vector<std::int64_t> scalars;
  scalars.reserve(kernel.scalars.size());
  for (const tile::ScalarParam& p : kernel.scalars)
    scalars.push_back(p.dtype == DType::i64 ? kAssumedSize : 0);
  return scalars;
}

double programs_of(const tile::Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  double programs = 1;
  for (const Index n : tile::grid_extents(kernel, scalars))
    programs *= static_cast<double>(std::max<Index>(n, 1));
  return programs;
}

tile::KernelCost assumed_cost(const tile::Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  constexpr Index kMostSampled = 1024;
  return tile::kernel_cost(kernel, scalars, kMostSampled, tile::loop_rounds(kernel));
}

// What a unit multiplies takes its rate, all other arithmetic that of vectors.
double compute_us(const tile::KernelCost& cost, const tile::Target& target) {
  double flops = cost.work.flops(), unit_s = 0;
  if (target.packed_dots && target.packed_dots->unit)
    for (const DType dtype : target.packed_dots->matrix_types) {
      flops -= cost.work.matrix[dtype];
      unit_s += cost.work.matrix[dtype] / (target.packed_dots->unit->share * target.matrix_flops_per_s);
    }
  return 1e6 * (flops / target.flops_per_s + unit_s);
}

double program_us(const tile::KernelCost& cost, double programs, const tile::Target& target) {
  // The rates are those of all cores together; most accesses are near.
  const double bytes_us = 1e6 * cost.bytes_accessed() / target.bytes_per_s(0);
  return std::max(compute_us(cost, target), bytes_us) * target.units / programs;
}

// The share of the written elements that lie in views which the kernel does not read: a store to the others
// finds its line where the load brought it.
double share_not_read(const tile::Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  const std::vector<tile::ViewUse> uses = tile::view_uses(kernel);
  double all = 0, not_read = 0;
  for (std::size_t v = 0; v < uses.size(); ++v) {
    if (!uses[v].written) continue;
    double bytes = static_cast<double>(size_bytes(kernel.views[v].dtype));
    for (const tile::Dim& d : kernel.views[v].extents) bytes *= static_cast<double>(d.in(scalars.data()));
    all += bytes;
    if (!uses[v].read) not_read += bytes;
  }
  return all > 0 ? not_read / all : 1;
}

bool has_dot(const tile::Kernel& kernel) {
  bool found = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) { found = found || op.kind == tile::OpKind::dot; });
  return found;
}

}  // namespace

double predict_program_us(const tile::Kernel& kernel, const tile::Target& target) {
  const std::vector<std::int64_t> scalars = assumed_scalars(kernel);
  return program_us(assumed_cost(kernel, scalars), programs_of(kernel, scalars), target);
}

std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target) {
  const std::vector<std::int64_t> scalars = assumed_scalars(kernel);
  const tile::KernelCost cost = assumed_cost(kernel, scalars);
  // Fewer programs than cores leave the others idle, and so does a launch that is over before they are woken;
  // though one core alone has more than its share of the memory.
  const double programs = programs_of(kernel, scalars), units = std::max(1, target.units),
               cores = runs_on_caller(programs, program_us(cost, programs, target)) ? 1 : programs,
               busy = std::min(1.0, cores / units),
               moving = std::min(1.0, cores / (target.alone_share * units));
  const double unique = cost.work.bytes(), rate = target.bytes_per_s(unique),
               passing = std::max(unique, target.beside_bytes);
  // What a core's own caches hold needs no fetching; where these are not known, what the last one holds.
  const bool near = target.unit_caches_hold(passing),
             held = target.unit_cache_bytes > 0 ? near : target.cache_holds(passing);
  // What a program without products reads again has left its core's cache where all that it touches did.
  const bool again =
      !has_dot(kernel) && target.unit_cache_bytes > 0 && !target.unit_caches_hold(unique / programs * units);
  const double moved = again ? std::max(unique, cost.bytes_accessed()) : unique;
  // Rows that a reduction walks first and others after it: the next ones are fetched meanwhile (row_walks.h).
  bool walks_again = false;
  tile::for_each_op(
      kernel.body, [&](const tile::Op& op) { walks_again = walks_again || op.kind == tile::OpKind::reduce; });
  const double launch_us = 1e6 * target.launch_s, not_read = share_not_read(kernel, scalars);
  std::vector<backends::Candidate> all;
  for (const bool streaming : {false, true})
    for (const int unroll : {4, 2, 8}) {
      backends::Candidate c;
      c.schedule = {.kind = tile::CpuLoops{.unroll = unroll,
                                           .fetch_ahead = walks_again && !held,
                                           .streaming_stores = streaming}};
      // A cached store first reads the line it overwrites; a streaming one makes the next reader fetch it
      // again.
      const double stored = cost.work.bytes_written;
      const bool fits = target.cache_holds(stored);
      double bytes = moved;
      if (!streaming && !near) bytes += stored * not_read;
      if (streaming && fits) bytes += 2 * stored;
      // Fewer chains hide less latency; many spill.
      const double chains = unroll == 4 ? 1.0 : unroll == 2 ? kOfTwoChains : kOfEightChains;
      c.predicted_us =
          launch_us + std::max(compute_us(cost, target) * chains / busy, 1e6 * bytes / rate / moving);
      all.push_back(c);
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.predicted_us < b.predicted_us; });
  return all;
}

double predicted_us(const tile::Kernel& kernel, const tile::Target& target) {
  return list_candidates(kernel, target).front().predicted_us;
}

}  // namespace tilewright::cpu
