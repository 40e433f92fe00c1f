// Launches: arguments are checked, then programs run on the pool or one after another.
#include "backends/reference/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "backends/reference/machine.h"

namespace tilewright::reference {

using tile::Kernel;

namespace {

std::string check_arguments(const Kernel& kernel, const std::vector<ViewBinding>& views,
                            const std::vector<std::int64_t>& scalars) {
  if (views.size() != kernel.views.size())
    return fmt::format("{} views bound, the kernel has {}", views.size(), kernel.views.size());
  if (scalars.size() != kernel.scalars.size())
    return fmt::format("{} scalars given, the kernel has {}", scalars.size(), kernel.scalars.size());
  for (std::size_t v = 0; v < views.size(); ++v) {
    const tile::ViewParam& param = kernel.views[v];
    for (const tile::Dim& d : param.extents)
      if (!d.is_constant() && scalars[static_cast<std::size_t>(d.scalar)] < 0)
        return fmt::format("view %{}: a negative extent", param.name);
    if (views[v].extent_bytes < 0 || views[v].before_bytes < 0)
      return fmt::format("view %{}: a buffer of negative size", param.name);
    const auto address = reinterpret_cast<std::uintptr_t>(views[v].data);
    if (address % static_cast<std::uintptr_t>(param.align_bytes) != 0)
      return fmt::format("view %{} is not aligned to {} bytes", param.name, param.align_bytes);
  }
  return "";
}

Index program_count(const std::vector<Index>& grid) {
  return std::accumulate(grid.begin(), grid.end(), Index{1}, std::multiplies<>());
}

bool adds_atomically(const Kernel& kernel) {
  const std::vector<tile::ViewUse> uses = view_uses(kernel);
  return std::any_of(uses.begin(), uses.end(), [](const tile::ViewUse& use) { return use.accumulated; });
}

void run_programs(Launch& launch, ThreadPool* pool) {
  const Index programs = program_count(launch.grid);
  const bool alone = !pool || launch.shadow || launch.bounds || adds_atomically(launch.kernel);
  if (alone) {
    Machine machine(launch);
    for (Index p = 0; p < programs; ++p) machine.run(p);
    return;
  }
  // A part is a few programs of one machine: its tables are allocated once for them.
  const Index grain = std::max<Index>(1, programs / (8 * pool->size()));
  pool->parallel_for(
      programs,
      [&](Index begin, Index end, int) {
        Machine machine(launch);
        for (Index p = begin; p < end; ++p) machine.run(p);
      },
      grain);
}

// Runs all programs of a launch that `watch` has said who looks on at.
Status run_watched(const Kernel& kernel, const std::vector<ViewBinding>& views,
                   const std::vector<std::int64_t>& scalars, ThreadPool* pool,
                   const std::function<void(Launch&)>& watch) {
  if (std::string problem = check_arguments(kernel, views, scalars); !problem.empty())
    return failure(Failure::Kind::invalid, fmt::format("kernel {}: {}", kernel.name, problem));
  Launch launch{.kernel = kernel,
                .scalars = scalars,
                .views = bind_views(kernel, views, scalars),
                .grid = grid_extents(kernel, scalars)};
  watch(launch);
  try {
    run_programs(launch, pool);
  } catch (const Trap& trap) {
    return failure(Failure::Kind::invalid, trap.what());
  }
  return Unit{};
}

}  // namespace

Status run(const Kernel& kernel, const std::vector<ViewBinding>& views,
           const std::vector<std::int64_t>& scalars, const Options& options) {
  std::optional<Shadow> shadow;
  return run_watched(kernel, views, scalars, options.pool, [&](Launch& launch) {
    if (options.checked) launch.shadow = &shadow.emplace(launch.views, views);
  });
}

Result<ErrorBounds> run_with_bounds(const Kernel& kernel, const std::vector<ViewBinding>& views,
                                    const std::vector<std::int64_t>& scalars, const ErrorModel& model) {
  std::optional<BoundsTracker> bounds;
  const Status done = run_watched(kernel, views, scalars, nullptr, [&](Launch& launch) {
    launch.bounds = &bounds.emplace(kernel, launch.views, views, model);
  });
  if (!done) return done.error();
  return bounds->finish();
}

}  // namespace tilewright::reference
