// Element loops: rows of the next programs are copied into shared memory, behind what the threads exchange
// there.
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/refusal.h"

#include <fmt/format.h>

namespace tilewright::cuda {

Status check_kind(const tile::Kernel&, const tile::CpuLoops&, CudaPlan&) {
  return refusal("cpu: a schedule of another device");
}
Status place_blocks(const tile::CpuLoops&, CudaPlan&) { return Unit{}; }

Status check_kind(const tile::Kernel&, const tile::LibraryCall&, CudaPlan&) {
  return refusal("library: its calls are not planned, nor printed as kernels");
}
Status place_blocks(const tile::LibraryCall&, CudaPlan&) { return Unit{}; }

Status check_kind(const tile::Kernel& kernel, const tile::ElementLoops& kind, CudaPlan& plan) {
  if (kind.through_shared > 0) {
    if (kind.stages > 1 || kind.cluster > 1 || plan.layouts.is_packed())
      return refusal("through_shared: beside it blocks have one program each, and no cluster");
    plan.runs = find_row_runs({kernel, *plan.loops, plan.ranges, plan.schedule}, plan.layouts);
    if (plan.runs.all.empty())
      return refusal("through_shared: no tile of whole rows that lie one behind another");
  }
  if (kind.stages <= 1) return Unit{};
  plan.staged = find_staged_loads({kernel, *plan.loops, plan.ranges, plan.schedule}, plan.layouts);
  if (plan.staged.empty())
    return refusal(fmt::format("stages={}: no load that can be copied ahead", kind.stages));
  if (plan.layouts.is_packed()) return refusal("stages: programs side by side do not walk");
  return Unit{};
}

Status place_blocks(const tile::ElementLoops& kind, CudaPlan& plan) {
  plan.shared.staged_at = plan.shared.dynamic = round_up(plan.shared.exchanged, kSlotBytes);
  for (const StagedLoad& s : plan.staged)
    plan.shared.dynamic += s.slots * plan.schedule.threads * kind.stages * kSlotBytes;
  plan.shared.dynamic += plan.runs.bytes;
  return Unit{};
}

}  // namespace tilewright::cuda
