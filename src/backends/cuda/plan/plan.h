// The plan of a kernel under a schedule: all that is decided before a line is printed. What cannot be
// planned is refused here, with the reason; what is planned can be printed. Candidates, estimates and
// printing share it.
#pragma once

#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/layout/layout.h"
#include "backends/cuda/layout/row_runs.h"
#include "backends/cuda/layout/staging.h"
#include "backends/cuda/machine/arch.h"
#include "backends/cuda/plan/b2b_rounds.h"
#include "backends/cuda/plan/copy_points.h"
#include "backends/cuda/plan/element_loops.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace tilewright::cuda {

struct PlanOptions {
  Arch arch;
  Index max_shared_bytes = 227 * 1024;  // a block
};

// Bytes of a block's shared memory.
struct SharedMemory {
  Index exchanged = 0;    // where a program's threads exchange values
  Index exchange_at = 0;  // first byte of the exchanges
  Index dynamic = 0;      // all that the launch asks for
  Index staged_at = 0;    // of these: rows of the next programs, or runs of rows, lie from here on
  Index of_cluster = 0;   // declared by the kernel: what the blocks of a cluster tell each other
};

struct CudaPlan {
  tile::Schedule schedule;
  PlanOptions options;
  std::shared_ptr<const printer::LoopPlan> loops;  // of the schedules that share it
  std::vector<printer::ValueRange> ranges;
  Layouts layouts;
  DotUse dots;
  std::vector<TensorBlock> maps;  // the kernel's tensor maps
  SharedMemory shared;
  ElementLoops elements;

  std::vector<StagedLoad> staged;  // ElementLoops: loads of the next programs
  RowRuns runs;                    // ElementLoops: tiles that come and leave as runs of bytes
  OverlappingRounds rounds;        // WgmmaB2b
  std::vector<int> block_stages;   // back-to-back matmuls: pipeline stages of each block
  std::map<const tile::Op*, std::vector<CopyPoint>> copy_points;  // MmaB2b: by loop

  CudaPlan() = default;
  // Loops and dots are known by their addresses.
  CudaPlan(const CudaPlan&) = delete;
  CudaPlan& operator=(const CudaPlan&) = delete;
  CudaPlan(CudaPlan&&) = default;
  CudaPlan& operator=(CudaPlan&&) = default;
};

// Plans of one kernel under several schedules: what these share is found once.
class KernelPlanner {
 public:
  KernelPlanner(const tile::Kernel& kernel, const PlanOptions& options);
  // Fails with `unsupported` and the reason when the schedule does not fit the kernel or the device.
  Result<CudaPlan> plan(const tile::Schedule& schedule);

 private:
  struct Loops {
    std::shared_ptr<const printer::LoopPlan> plan;
    std::map<tile::ValueId, tile::ValueId> max_of_sum;  // ElementLoops
  };
  const Result<DotUse>& dots(const tile::Schedule& schedule);
  const Loops& loops(const tile::Schedule& schedule, const DotUse& dots);

  const tile::Kernel& kernel_;
  PlanOptions options_;
  std::vector<printer::ValueRange> ranges_;
  std::map<std::pair<std::size_t, bool>, Result<DotUse>> dots_;  // by kind and whether results are sent
  std::map<std::tuple<std::size_t, bool, bool>, Loops> loops_;   // see loops()
};

Result<CudaPlan> plan_kernel(const tile::Kernel& kernel, const tile::Schedule& schedule,
                             const PlanOptions& options);

}  // namespace tilewright::cuda
