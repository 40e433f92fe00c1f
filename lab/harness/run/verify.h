// Verification of contenders: before anything is timed, and again on what the timed runs left behind.
#pragma once

#include <functional>
#include <string_view>

#include "harness/run/output_check.h"

namespace tilewright::lab {

struct Verification {
  bool verified = false;
  double max_rel_err = 0;  // of the output that came closest to its bound, over all rounds
  double tolerance = 0;    // that output's
  double compared = 1;     // the share of an output's elements that had a reference, the least
  std::string reason;      // when not verified: what is wrong and where
  bool no_memory = false;  // the device could not hold what it needs: not a wrong program
  // The program of another process could not run, or its process ended: nothing is known of its outputs.
  bool gone = false;
};

// Checks every available contender in full, in rounds of fresh inputs. A round: new random inputs; outputs
// poisoned (with NaN bytes in the first round, with an improbable finite value in the second, so that what is
// not written shows even where the reference is NaN or an integer); one iteration; every element of every
// output compared (of a reference that knows only some rows, those; the others must be written and
// finite); the inputs' digest unchanged; no output inside an input. Catches: outputs of zeros, stale,
// constant, cached, partly written or aliasing their input. One Verification per contender; an unavailable
// one is not verified. `progress` is told what is about to be done: "reference", "verify eager".
using Progress = std::function<void(std::string_view what)>;
struct VerifyOptions {
  int rounds = 2;  // 1: NaN poison alone
  Progress progress = {};
  std::function<bool()> stop = {};  // asked ahead of each contender: when true, the others are not verified
};
std::vector<Verification> verify(PairInstance& instance, std::uint64_t seed,
                                 const VerifyOptions& options = {});

// Gives the inputs data that no contender has seen and poisons the outputs of those that are verified: what a
// contender then leaves behind is the work of the timed runs. One whose outputs cannot be poisoned is
// verified no longer. Call before timing; returns the inputs' digest.
Result<std::uint64_t> prepare_timed(PairInstance& instance, std::vector<Verification>& verifications,
                                    std::uint64_t seed);

// Compares what each contender left after its last iteration, `last_iteration[c]`, and merges the outcome
// into `verifications`. An iteration of −1: the contender did not run. Inputs that are no longer those of
// `digest_before` spoil the whole instance: whoever changed them, nobody's time is known to be that of the
// stated work.
void verify_timed(PairInstance& instance, std::uint64_t digest_before,
                  std::span<const std::int64_t> last_iteration, std::vector<Verification>& verifications);

}  // namespace tilewright::lab
