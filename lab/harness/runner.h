// One instance from inputs to rows: verify, time, verify what was timed, hold against the ceilings, judge.
#pragma once

#include <functional>

#include "harness/record.h"
#include "harness/timing.h"
#include "harness/verify.h"

namespace tilewright::lab {

struct RunOptions {
  TimingOptions timing;
  std::uint64_t seed = 1;
  // A median this factor faster than the ceilings allow is an error: the ceilings are medians of measurements
  // too.
  double ceiling_slack = 1.05;
};

struct InstanceResult {
  std::vector<Row> rows;  // one per contender, the baseline first
  WorkEntry work;
  double frame_us = 0;  // the harness's share of an iteration, the largest among the contenders
  bool interrupted = false;
};

InstanceResult run_instance(PairInstance& instance, LabDevice& device, const RunOptions& options);

// Makes and runs every job; `done` is called with each result as it comes, for progress. A job that the
// device cannot do becomes one row, UNAVAILABLE, with the reason. Stops after the current instance when
// options.timing.stop says so, and keeps what was measured.
RunRecord run_jobs(std::span<const Job> jobs, LabDevice& device, const RunOptions& options,
                   Environment environment,
                   const std::function<void(const Job&, const InstanceResult&)>& done = {});

// Whether a run has nothing to be ashamed of: no row WRONG, FAILED or IMPOSSIBLE. For an exit status.
bool sound(const RunRecord& run);

}  // namespace tilewright::lab
