// LoopUniform: what does not change along the vectors' axis: scalars of a row, or of the whole loop.
#pragma once

#include "backends/cpu/loops/loop_reductions.h"

namespace tilewright::cpu {

class LoopUniform : LoopParts {
 public:
  explicit LoopUniform(LoopState& s, LoopExpressions& expressions, LoopReductions& reductions)
      : LoopParts(s), expressions_(expressions), reductions_(reductions) {}

  void print_uniform(bool along_other);
  void print_uniform_effects();

 private:
  std::string uniform_text(int i);
  void print_uniform_effect(int i);
  Amount indexed_offset(const printer::Instr& instr, std::size_t first);

  LoopExpressions& expressions_;
  LoopReductions& reductions_;
};

}  // namespace tilewright::cpu
