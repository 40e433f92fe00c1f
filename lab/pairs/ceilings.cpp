// Copy, sum and fill kernels over working sets of each size.
#include "pairs/ceilings.h"

#include <tilewright/tensor/tile_function.h>
#include <tilewright/tile/builder.h>

#include <algorithm>

#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

using tile::Builder;

TileFunction copy_kernel(Index n, Index block) {
  Builder k("probe_copy");
  const auto x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  const auto start = k.program_id(0) * block;
  k.store(y, {start}, k.load(x, {start}, {.shape = {block}}));
  return TileFunction(k.finish({{{n, block}}}));
}

TileFunction read_kernel(Index n, Index block) {
  Builder k("probe_read");
  const auto x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {ceil_div(n, block)});
  const auto program = k.program_id(0);
  k.store(y, {program}, k.reduce(tile::Monoid::sum, k.load(x, {program * block}, {.shape = {block}}), 0));
  return TileFunction(k.finish({{{n, block}}}));
}

TileFunction write_kernel(Index n, Index block) {
  Builder k("probe_write");
  const auto y = k.view("y", DType::f32, {n});
  k.store(y, {k.program_id(0) * block}, k.literal(DType::f32, 1.5, {block}));
  return TileFunction(k.finish({{{n, block}}}));
}

// The least time of one call in microseconds: batches of a few milliseconds, the best of them.
template <class F>
double best_us(Timer& timer, Context& context, F&& call) {
  call();
  context.synchronize();
  double best = 1e30;
  std::int64_t batch = 1;
  const double end = steady_now_us() + 60e3;
  while (steady_now_us() < end) {
    if (!timer.start()) break;
    for (std::int64_t i = 0; i < batch; ++i) call();
    if (!timer.waits()) context.synchronize();
    const auto us = timer.stop_us();
    if (!us) break;
    best = std::min(best, *us / static_cast<double>(batch));
    if (*us < 2000) batch *= 2;
  }
  return best;
}

// The best rate of `kernel` over every schedule the backend offers.
double best_rate(LabDevice& device, TileFunction kernel, const std::vector<TileArg>& args, double bytes) {
  double best = 0;
  const auto& backend = detail::backend_of(*device.context, device.name);
  for (const backends::Candidate& candidate : backend.candidates(kernel.kernel())) {
    if (!candidate.refusal.empty()) continue;
    kernel.use(candidate.schedule);
    best = std::max(best, bytes / best_us(*device.timer, *device.context, [&] { kernel(args); }) * 1e6);
  }
  return best;
}

MemoryLevel measure_level(LabDevice& device, std::string name, double capacity, Index elements) {
  const Index block = device.kind == DeviceKind::cuda ? 4096 : std::min<Index>(16384, elements / 8);
  const Index n = elements / block * block;
  Context& context = *device.context;
  const double bytes = 4.0 * static_cast<double>(n);
  const Tensor x = context.randn(Shape{n}), y = context.randn(Shape{n});
  const Tensor sums = context.zeros(Shape{n / block});
  MemoryLevel level{.name = std::move(name), .capacity_bytes = capacity};
  // Half of each array: the copy's working set is the level's, like that of the others.
  const Index half = n / 2 / block * block;
  level.copy = best_rate(device, copy_kernel(half, block), {x, into(y)}, 2 * 4.0 * static_cast<double>(half));
  level.read = best_rate(device, read_kernel(n, block), {x, into(sums)}, bytes);
  level.write = best_rate(device, write_kernel(n, block), {into(y)}, bytes);
  return level;
}

}  // namespace

Ceilings measure_ceilings(LabDevice& device) {
  const tile::Target& target = detail::backend_of(*device.context, device.name).target();
  Ceilings ceilings{.source = "measured before this run"};
  const auto elements = [](double bytes) { return static_cast<Index>(bytes / 4); };
  const bool cuda = device.kind == DeviceKind::cuda;
  const double inner = cuda ? 0 : 2.0 * static_cast<double>(target.row_bytes) * target.units;
  const auto outer = static_cast<double>(target.cache_bytes);
  if (inner > 0 && inner < outer)
    ceilings.levels.push_back(measure_level(device, "L2", inner, elements(inner / 2)));
  ceilings.levels.push_back(measure_level(device, cuda ? "L2" : "L3", outer, elements(outer / 2)));
  ceilings.levels.push_back(
      measure_level(device, "memory", 0, elements(std::max(8 * outer, cuda ? 2e9 : 256e6))));
  return ceilings;
}

}  // namespace tilewright::lab
