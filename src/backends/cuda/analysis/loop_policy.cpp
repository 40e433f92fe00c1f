// Registers against recomputation.
#include "backends/cuda/analysis/loop_policy.h"

#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>

namespace tilewright::cuda {

bool crowded(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  Index largest = 1;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    if (op.kind == tile::OpKind::load) largest = std::max(largest, kernel.type(op.results[0]).size());
  });
  const int row = threads_per_row(schedule);
  const bool packed =
      side_by_side(schedule) > 1 || (row <= 32 && schedule.threads > row && largest <= 32 * kManyElements);
  const Index threads =
      packed ? row : Index{std::max(1, program_threads(schedule))} * launched_cluster(schedule);
  return ceil_div(largest, threads) > kManyElements;
}

printer::LoopPolicy loop_policy(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  const double where_many =
      schedule.threads <= kThreadsWithRoom ? kKeepAboveFlopsWhereRoom : kKeepAboveFlopsWhereMany;
  return {.keep_above_flops = crowded(kernel, schedule) ? where_many : kKeepAboveFlops, .keep_loads = true};
}

}  // namespace tilewright::cuda
