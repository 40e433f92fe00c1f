// The decisions of fit_memory(): the temporary that is given up where most bytes are alive, and made again in
// front of what reads it next; and all those that a checkpointed function made.
#pragma once

#include "passes/plan/plan_lives.h"

#include <cstddef>
#include <set>
#include <vector>

namespace tilewright::passes {

struct Recipe;

// The launches of checkpointed functions.
struct CheckpointedLaunches {
  std::vector<int> calls;  // by kernel: the call that it computes, from 1 on; 0: none. Empty: no call
  std::set<int> results;   // buffers of what such calls return, which are kept
};

class LaunchRepeater {
 public:
  LaunchRepeater(RepeatingPlan plan, KernelUses kernels);

  const RepeatingPlan& plan() const { return plan_; }
  Index peak_bytes() const { return PlanLives(plan_, kernels_).peak_bytes(); }
  // Gives up the temporary that takes the least predicted time for its bytes; false: there is none, or as
  // many launches are repeated as there were.
  bool give_up_one();
  // Gives up what each call makes and launches behind it read; it is made again in front of the first of
  // these. False: there is nothing of the kind.
  bool give_up_checkpointed(const CheckpointedLaunches& launches);

 private:
  bool give_up_call(int call, const CheckpointedLaunches& launches);
  void apply(const Recipe& recipe, const PlanLives& lives);
  int copy_of(int buffer);
  // A later copy of the same values is not made again where this one can live on until then. `behind`: the
  // step behind those that make it.
  void take_the_place_of_later_ones(int buffer, int behind);
  // Repeated launches of which nothing is read.
  void drop_unread();

  RepeatingPlan plan_;
  KernelUses kernels_;
  std::size_t given_up_ = 0, most_given_up_ = 0;
};

}  // namespace tilewright::passes
