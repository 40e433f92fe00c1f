// The time of a block that waits for nobody: what its warps and its threads do, added up.
#include "backends/cuda/schedule/straight_block.h"

#include "backends/cuda/machine/fitted.h"

#include <algorithm>

namespace tilewright::cuda {

bool is_straight(const KernelWork& work, const Occupancy& o, const tile::Schedule& schedule) {
  return work.exchanges == 0 && !work.loops && !o.staged && work.scanned == 0 && work.multiply_adds == 0 &&
         row_cluster(schedule) == 1;
}

namespace {

// The threads of one program.
double threads_of(const CudaPlan& plan) {
  return plan.schedule.threads / static_cast<double>(plan.layouts.programs_per_block);
}

// Loads and stores of a thread.
double accesses_of(const KernelWork& work, const Occupancy& o, const CudaPlan& plan) {
  return (work.streamed_bytes + work.cached_bytes) * o.waste / threads_of(plan) / plan.schedule.vector_bytes;
}

}  // namespace

double instructions_beside(const KernelWork& work, const Occupancy& o, const CudaPlan& plan) {
  return threads_of(plan) * (kThreadInstructions + accesses_of(work, o, plan) * kAccessInstructions);
}

double straight_block_us(const KernelWork& work, const Occupancy& o, const CudaPlan& plan) {
  const double accesses = accesses_of(work, o, plan);
  const double instructions = work.instructions * o.waste / threads_of(plan),
               elements = std::max(1.0, o.elements);
  const double warps = plan.schedule.threads / 32.0;
  const double of_element = instructions / elements;
  const double of_thread = accesses * kAccessUs + of_element * kInstructionUs +
                           (elements - 1) * (kElementUs + of_element * kNextInstructionUs);
  const double of_warps = warps * (kWarpStartUs + accesses * kWarpAccessUs);
  const double of_units =
      instructions * plan.schedule.threads / (kLanes * kIssueClockMhz) + o.line_visits / kIssueClockMhz;
  return kStraightUs + of_thread + of_warps + of_units;
}

}  // namespace tilewright::cuda
