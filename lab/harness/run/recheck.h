// What beats a ceiling has it probed again, beside the work, before it is judged.
//
// A ceiling was probed at some other time, and a machine has slower minutes: a virtual one whose neighbours
// wake up above all. A contender above a ceiling therefore says one of two things: that the ceiling was
// probed in such a minute, or that the contender was measured wrongly. The two are told apart by timing the
// whole instance once more while the beaten figures are probed in the same seconds, under the same
// conditions. The better ceiling is kept, the later times count, and only what is above even then is
// IMPOSSIBLE.
#pragma once

#include "harness/run/timing.h"

namespace tilewright::lab {

struct RecheckOptions {
  TimingOptions timing;
  double slack = 1.05;  // as RunOptions::ceiling_slack
  int tries = 3;  // each takes the instance's budget again; a minute that turns in the middle needs a second
  std::function<void(std::string_view what)> progress = {};
};

struct Recheck {
  Timing timing;                // the last complete one
  int tries = 0;                // 0: nothing was above a ceiling
  std::vector<bool> was_above;  // by contender, when `first` was timed
  std::string why_not = {};     // the probe failed: why
};

// `first` is how the instance was timed. Raises device.ceilings; without device.probe_again it does nothing.
Recheck recheck_ceilings(PairInstance& instance, LabDevice& device, const std::vector<bool>& take,
                         Timing first, const RecheckOptions& options);

}  // namespace tilewright::lab
