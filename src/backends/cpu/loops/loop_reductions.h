// LoopReductions: accumulators of reductions and scans.
#pragma once

#include "backends/cpu/loops/loop_expressions.h"

namespace tilewright::cpu {

class LoopReductions : LoopParts {
 public:
  explicit LoopReductions(LoopState& s, LoopExpressions& expressions)
      : LoopParts(s), expressions_(expressions) {}

  void declare_accumulators(const Pass& pass);
  void declare_block_sums(const Pass& pass);
  void close_blocks(const Pass& pass);
  void accumulate(int i, Pass& pass);
  void finish_reductions(Pass& pass);
  void print_kept_scalar(int i, const std::string& value);

 private:
  void declare_totals(int i, const Pass& pass);
  void finish_along_vec(int i, int copies);
  void print_scan(int i, Pass& pass);

  LoopExpressions& expressions_;
};

}  // namespace tilewright::cpu
