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
  // Whether some rows' lanes are folded together, as many rows at a time as a vector has lanes.
  bool folds_rows() const;
  void declare_rows_of_lanes();
  void begin_rows(const std::string& first) { first_row_ = first; }
  void fold_rows();

 private:
  bool folds_rows(int i) const;
  void declare_totals(int i, const Pass& pass);
  void finish_along_vec(int i, int copies);
  void print_scan(int i, Pass& pass);

  LoopExpressions& expressions_;
  std::map<int, std::string> rows_of_lanes_;  // of each instruction whose rows are folded together
  std::string first_row_;                     // of those that are
};

}  // namespace tilewright::cpu
