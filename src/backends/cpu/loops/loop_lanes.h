// LoopLanes: integers that count lanes, which need no vector of their own.
#pragma once

#include "backends/cpu/loops/loop_parts.h"

namespace tilewright::cpu {

class LoopLanes : LoopParts {
 public:
  explicit LoopLanes(LoopState& s) : LoopParts(s) {}

  bool is_uniform(const printer::Ref& ref) const;
  bool counts_lanes(const printer::Ref& ref) const;
  bool first_is_multiple(const printer::Ref& ref, Index factor) const;
  int counting_side(int i) const;
  bool is_block_of_words(int i) const;
  bool adds_alone(const tile::Op& op) const;
  int walked_index(int i) const;
  void find_needed_lanes();
};

}  // namespace tilewright::cpu
