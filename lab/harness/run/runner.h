// One instance from inputs to rows: verify, time, verify what was timed, hold against the ceilings, judge.
#pragma once

#include <functional>

#include "harness/run/record.h"
#include "harness/run/timing.h"
#include "harness/run/verify.h"

namespace tilewright::lab {

struct RunOptions {
  TimingOptions timing;
  std::uint64_t seed = 1;
  // A median this factor faster than the ceilings allow has them probed again (recheck.h), and is an error if
  // it still is: the ceilings are measurements, too.
  double ceiling_slack = 1.05;
  int rounds = 2;          // of verification before timing, at most as many as there are poisons (verify.h)
  Progress progress = {};  // told what an instance is about to do; never between two samples
};

struct InstanceResult {
  // One per contender, the baseline first; then the best of each family. None: interrupted before any was
  // timed.
  std::vector<Row> rows;
  WorkEntry work;
  double frame_us = 0;  // the harness's share of an iteration, the largest among the contenders
  bool interrupted = false;
};

InstanceResult run_instance(PairInstance& instance, LabDevice& device, const RunOptions& options);

// Who watches a run.
struct RunEvents {
  std::function<void(const Job&)> started = {};
  std::function<void(const Job&, const InstanceResult&)> done = {};
  // May add contenders to an instance that was made: peers in another process.
  std::function<void(const Job&, PairInstance&)> made = {};
};

// Makes and runs every job, telling `events`. A job that the
// device cannot do becomes one row, UNAVAILABLE or NO MEMORY, with the reason. When options.timing.stop says
// so, an instance that is being verified is left out, one that is being timed is kept as far as it came, and
// the run ends.
RunRecord run_jobs(std::span<const Job> jobs, LabDevice& device, const RunOptions& options,
                   Environment environment, const RunEvents& events = {});

// Whether no row of a run is WRONG, FAILED or IMPOSSIBLE, for an exit status.
bool sound(const RunRecord& run);
// Why a run ends with status 1, in a line: "2 of 9 rows: elu/compiled cpu 4096 f32 is IMPOSSIBLE (faster
// than ...); ...", or that no row fitted into memory. Empty: it does not.
std::string why_failed(const RunRecord& run);

}  // namespace tilewright::lab
