// One decision of fit_memory(): the temporary that is given up where most bytes are alive, and made again in
// front of what reads it next.
#pragma once

#include "passes/plan/plan_lives.h"

#include <cstddef>

namespace tilewright::passes {

struct Recipe;

class LaunchRepeater {
 public:
  LaunchRepeater(RepeatingPlan plan, KernelUses kernels);

  const RepeatingPlan& plan() const { return plan_; }
  Index peak_bytes() const { return PlanLives(plan_, kernels_).peak_bytes(); }
  // Gives up the temporary that takes the least predicted time for its bytes; false: there is none, or as
  // many launches are repeated as there were.
  bool give_up_one();

 private:
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
