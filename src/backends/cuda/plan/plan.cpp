// The order of decisions: dots, layouts, the pipeline's own, element loops, shared memory.
#include "backends/cuda/plan/plan.h"

#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/layout/cluster_exchange.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/refusal.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::DotUnit;
using tile::Kernel;
using tile::OpKind;

namespace {

PipelineKind pipeline_of(const tile::Schedule& schedule, const DotUse& dots) {
  const bool wgmma = schedule.dot == DotUnit::wgmma;
  if (dots.dot) return wgmma ? PipelineKind::wgmma_dot : PipelineKind::cp_async_dot;
  if (dots.b2b) return wgmma ? PipelineKind::wgmma_b2b : PipelineKind::cp_async_b2b;
  return PipelineKind::elements;
}

Status check_fields(const Kernel& kernel, const tile::Schedule& s) {
  if (s.cutlass_pingpong && s.dot != DotUnit::wgmma) return refusal("cutlass_pingpong: wants dot=wgmma");
  if (s.group_m > 0 && kernel.grid.size() < 2) return refusal("group_m: wants a second grid axis");
  return Unit{};
}

// Rows of the next programs are copied into shared memory, behind what the threads exchange there.
Status plan_staged(const Kernel& kernel, CudaPlan& plan) {
  if (plan.schedule.stages > 1) {
    plan.staged = find_staged_loads({kernel, plan.loops, plan.ranges, plan.schedule}, plan.layouts);
    if (plan.staged.empty())
      return refusal(fmt::format("stages={}: no load that can be copied ahead", plan.schedule.stages));
  }
  if (walks_programs(plan.schedule) && plan.layouts.is_packed())
    return refusal("persistent: programs side by side do not walk");
  return Unit{};
}

void place_staged(CudaPlan& plan) {
  plan.shared.staged_at = plan.shared.dynamic = round_up(plan.elements.exchanged_bytes, kSlotBytes);
  for (const StagedLoad& s : plan.staged)
    plan.shared.dynamic += s.slots * plan.schedule.threads * plan.schedule.stages * kSlotBytes;
}

Status check_pipeline(const Kernel& kernel, CudaPlan& plan) {
  switch (plan.pipeline) {
    case PipelineKind::elements:
      return plan_staged(kernel, plan);
    case PipelineKind::cp_async_dot:
      return check_copied_dot(kernel, plan);
    case PipelineKind::cp_async_b2b:
      return check_cp_async_b2b(kernel, plan);
    case PipelineKind::wgmma_dot:
    case PipelineKind::wgmma_b2b:
      return check_wgmma(kernel, plan);
  }
  return Unit{};
}

Status place_pipeline(CudaPlan& plan) {
  plan.shared.exchanged = plan.elements.exchanged_bytes;
  switch (plan.pipeline) {
    case PipelineKind::elements:
      place_staged(plan);
      return Unit{};
    case PipelineKind::cp_async_dot:
      place_copied_dot(plan);
      return Unit{};
    case PipelineKind::cp_async_b2b:
      return place_cp_async_b2b(plan);
    case PipelineKind::wgmma_dot:
    case PipelineKind::wgmma_b2b:
      return place_wgmma(plan);
  }
  return Unit{};
}

// Under Schedule::longest_first the grid's second axis counts slowest.
Status check_order(const Kernel& kernel, const CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  if (!s.longest_first) return Unit{};
  bool counts = false;  // whether the kernel asks for its place
  for_each_step(plan.loops.steps, [&](const Step& step) {
    counts = counts || (step.kind == Step::Kind::scalar && step.op->kind == OpKind::program_id &&
                        (s.group_m == 0 || step.op->param >= 2));
  });
  if (counts && (kernel.grid.size() < 2 || plan.layouts.is_packed() || row_cluster(s) > 1 || s.group_m > 0))
    return refusal("longest_first: wants a second grid axis, and no other order of programs");
  return Unit{};
}

Status check_shared(const Kernel& kernel, CudaPlan& plan) {
  plan.shared.of_cluster =
      cluster_exchange_bytes({kernel, plan.loops, plan.ranges, plan.schedule}, plan.layouts);
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
  const auto key = std::pair(s.dot, s.tma_store_stages > 0);
  const auto known = dots_.find(key);
  return known != dots_.end() ? known->second : dots_.emplace(key, find_dots(kernel_, s)).first->second;
}

// What plan_for() looks at.
const printer::LoopPlan& KernelPlanner::loops(const tile::Schedule& s, const DotUse& dots) {
  const auto key = std::tuple(s.dot, crowded(kernel_, s), s.keep_in_registers, s.intra_warpgroup_overlap);
  const auto known = loops_.find(key);
  return known != loops_.end() ? known->second : loops_[key] = plan_for(kernel_, s, dots);
}

Result<CudaPlan> KernelPlanner::plan(const tile::Schedule& schedule) {
  if (row_cluster(schedule) > 1 && !options_.arch.has_clusters())
    return refusal(
        fmt::format("cluster={}: {} has no clusters", row_cluster(schedule), options_.arch.text()));
  const Result<DotUse>& dots = this->dots(schedule);
  if (!dots) return dots.error();
  if (Status s = check_fields(kernel_, schedule); !s) return s.error();
  CudaPlan plan;
  plan.schedule = schedule, plan.options = options_;
  plan.dots = *dots;
  plan.pipeline = pipeline_of(schedule, plan.dots);
  plan.loops = loops(schedule, plan.dots);
  plan.ranges = ranges_;
  join_exchanges(kernel_, plan.loops, plan.elements);
  auto layouts = assign_layouts({kernel_, plan.loops, plan.ranges, schedule});
  if (!layouts) return layouts.error();
  plan.layouts = std::move(*layouts);
  plan.maps = tensor_blocks(kernel_, schedule, plan.dots);
  if (Status s = check_pipeline(kernel_, plan); !s) return s.error();
  if (Status s = plan_elements({kernel_, schedule, plan.loops, plan.layouts, plan.dots}, plan.elements); !s)
    return s.error();
  if (Status s = place_pipeline(plan); !s) return s.error();
  if (Status s = check_order(kernel_, plan); !s) return s.error();
  if (Status s = check_shared(kernel_, plan); !s) return s.error();
  return plan;
}

Result<CudaPlan> plan_kernel(const Kernel& kernel, const tile::Schedule& schedule,
                             const PlanOptions& options) {
  return KernelPlanner(kernel, options).plan(schedule);
}

}  // namespace tilewright::cuda
