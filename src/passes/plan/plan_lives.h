// How long the temporaries of a plan live, while launches of it are repeated.
#pragma once

#include "passes/plan/step_buffers.h"

#include <tilewright/tile/plan.h>

#include <map>
#include <vector>

namespace tilewright::passes {

// A step, and whether it repeats another.
struct PlannedStep {
  tile::PlanStep plan;
  double us = 0;  // predicted
  bool repeats = false;
};

// A plan's steps and buffers; kernels are those of the plan.
struct RepeatingPlan {
  std::vector<PlannedStep> steps;
  std::vector<tile::PlanBuffer> buffers;
  std::vector<int> origins;  // of each buffer: the one whose values it has again
};

using KernelUses = std::vector<std::vector<tile::ViewUse>>;  // by kernel of the plan

// What each step reads and writes, how long temporaries live, and how many bytes are alive.
class PlanLives {
 public:
  PlanLives(const RepeatingPlan& plan, const KernelUses& kernels);

  struct Life {
    int first = -1, last = -1, first_read = -1, last_write = -1;  // steps
    std::vector<int> writers, uses;
  };
  const Life& life(int buffer) const { return lives_[static_cast<std::size_t>(buffer)]; }
  const std::map<int, StepUse>& of_step(int step) const { return uses_[static_cast<std::size_t>(step)]; }
  Index bytes(int buffer) const;
  bool is_temporary(int buffer) const { return has_role(buffer, tile::PlanBuffer::Role::temporary); }
  bool is_input(int buffer) const { return has_role(buffer, tile::PlanBuffer::Role::input); }
  // Whether it is written as a whole before anything reads it, so that launching its writers again gives its
  // values again.
  bool is_made_at_once(int buffer) const;

  // Bytes of temporaries during a step, most during any of these (both included), and where most of all are.
  Index alive(int step) const { return alive_[static_cast<std::size_t>(step)]; }
  Index most_alive(int from, int to) const;
  int peak() const { return peak_; }
  Index peak_bytes() const { return alive_.empty() ? 0 : alive(peak_); }

 private:
  bool has_role(int buffer, tile::PlanBuffer::Role role) const;

  const RepeatingPlan& plan_;
  std::vector<std::map<int, StepUse>> uses_;
  std::vector<Life> lives_;
  std::vector<Index> alive_;
  int peak_ = 0;
};

// Bytes of a buffer, one at least.
Index bytes_of(const tile::PlanBuffer& buffer);

}  // namespace tilewright::passes
