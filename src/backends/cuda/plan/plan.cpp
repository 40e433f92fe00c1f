// The order of decisions: dots, layouts, the pipeline's own, element loops, shared memory.
#include "backends/cuda/plan/plan.h"

#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/layout/cluster_exchange.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/refusal.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::cuda {

using tile::Kernel;

namespace {

// The order of programs names the grid's second axis.
Status check_order(const Kernel& kernel, const tile::Schedule& s) {
  if (group_m(s) > 0 && is_longest_first(s))
    return refusal("group_m: longest_first is another order of programs");
  if (kernel.grid.size() > 1) return Unit{};
  if (group_m(s) > 0) return refusal("group_m: wants a second grid axis");
  if (is_longest_first(s)) return refusal("longest_first: wants a second grid axis");
  return Unit{};
}

Status check_shared(const Kernel& kernel, CudaPlan& plan) {
  plan.shared.of_cluster =
      cluster_exchange_bytes({kernel, *plan.loops, plan.ranges, plan.schedule}, plan.layouts);
  constexpr Index kMostOfCluster = kMostStaticSharedBytes - kStaticSharedBytes;
  if (plan.shared.of_cluster > kMostOfCluster)
    return refusal(fmt::format("needs {} bytes of shared memory for what a cluster exchanges, has {}",
                               plan.shared.of_cluster, kMostOfCluster));
  const Index left = plan.options.max_shared_bytes - kStaticSharedBytes - plan.shared.of_cluster;
  if (plan.shared.dynamic > left)
    return refusal(fmt::format("needs {} bytes of shared memory, a block has {}", plan.shared.dynamic, left));
  return Unit{};
}

}  // namespace

KernelPlanner::KernelPlanner(const Kernel& kernel, const PlanOptions& options)
    : kernel_(kernel), options_(options), ranges_(printer::value_ranges(kernel)) {}

const Result<DotUse>& KernelPlanner::dots(const tile::Schedule& s) {
  const auto key = std::pair(s.kind.index(), store_stages(s) > 0);
  const auto known = dots_.find(key);
  return known != dots_.end() ? known->second : dots_.emplace(key, find_dots(kernel_, s)).first->second;
}

// What plan_for() looks at.
const KernelPlanner::Loops& KernelPlanner::loops(const tile::Schedule& s, const DotUse& dots) {
  const auto key = std::tuple(s.kind.index(), crowded(kernel_, s), rounds(s) != tile::Rounds::apart);
  const auto known = loops_.find(key);
  if (known != loops_.end()) return known->second;
  printer::LoopPlan plan = plan_for(kernel_, s, dots);
  auto joined = join_exchanges(kernel_, plan);
  return loops_[key] = {std::make_shared<const printer::LoopPlan>(std::move(plan)), std::move(joined)};
}

Result<CudaPlan> KernelPlanner::plan(const tile::Schedule& schedule) {
  if (row_cluster(schedule) > 1 && !options_.arch.has_clusters())
    return refusal(
        fmt::format("cluster={}: {} has no clusters", row_cluster(schedule), options_.arch.text()));
  const Result<DotUse>& dots = this->dots(schedule);
  if (!dots) return dots.error();
  if (Status s = check_order(kernel_, schedule); !s) return s.error();
  CudaPlan plan;
  plan.schedule = schedule, plan.options = options_;
  plan.dots = *dots;
  const Loops& loops = this->loops(schedule, plan.dots);
  plan.loops = loops.plan;
  plan.elements.max_of_sum = loops.max_of_sum;
  plan.ranges = ranges_;
  auto layouts = assign_layouts({kernel_, *plan.loops, plan.ranges, schedule});
  if (!layouts) return layouts.error();
  plan.layouts = std::move(*layouts);
  plan.maps = tensor_blocks(kernel_, schedule, plan.dots);
  const auto check = [&](const auto& kind) { return check_kind(kernel_, kind, plan); };
  if (Status s = std::visit(check, plan.schedule.kind); !s) return s.error();
  if (Status s = plan_elements({kernel_, schedule, *plan.loops, plan.layouts, plan.dots}, plan.elements); !s)
    return s.error();
  plan.shared.exchanged = plan.elements.exchanged_bytes;
  const auto layout = [&](const auto& kind) { return place_blocks(kind, plan); };
  if (Status s = std::visit(layout, plan.schedule.kind); !s) return s.error();
  if (Status s = check_shared(kernel_, plan); !s) return s.error();
  return plan;
}

Result<CudaPlan> plan_kernel(const Kernel& kernel, const tile::Schedule& schedule,
                             const PlanOptions& options) {
  return KernelPlanner(kernel, options).plan(schedule);
}

}  // namespace tilewright::cuda
