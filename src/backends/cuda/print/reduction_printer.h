// ReductionPrinter: reductions and scans of element loops: their accumulators, and what threads, warps and
// blocks of a cluster exchange.
#pragma once

#include "backends/cuda/print/loop_analysis.h"

#include <map>

namespace tilewright::cuda {

class ReductionPrinter : PrinterParts {
 public:
  ReductionPrinter(KernelPrinter& k, const LoopAnalysis& analysis) : PrinterParts(k), analysis_(analysis) {}

  void print_reduction_starts(PrintedLoop& loop);
  void print_reduction_starts_of_row(PrintedLoop& loop);
  // The accumulators of pairs before their loop's end.
  void print_packed_extremes(PrintedLoop& loop);
  void print_exchange(PrintedLoop& loop);
  void print_scans(PrintedLoop& loop);
  void print_reduce(PrintedLoop& loop, std::size_t i,
                    const TypedText& value);  // adds `value` to the accumulator
  // Whether every maximum has met the sum that it waited for.
  bool is_complete() const { return deferred_.empty(); }

 private:
  struct Reduction {
    std::size_t instr;
    std::string monoid;    // "Max"
    std::string state;     // variable
    DType value_type;      // of the value in the state
    bool indexed = false;  // with its place
    std::string type() const { return maybe_indexed(value_type, indexed); }
  };
  Reduction reduction(const PrintedLoop& loop, std::size_t i) const;
  void print_row_exchange(PrintedLoop& loop, const std::vector<Reduction>& reductions);
  void print_column_exchange(const PrintedLoop& loop, const Reduction& reduction);
  void print_cluster_columns(const PrintedLoop& loop, const std::vector<Reduction>& reductions);
  void print_reduction_end(PrintedLoop& loop, const Reduction& reduction);
  void print_scaled_extreme(PrintedLoop& loop, const Reduction& reduction);
  // One exchange for a maximum and the sum of powers below it (print_powers.cpp)
  bool print_own_maximum(const PrintedLoop& loop, const Reduction& max);
  std::optional<Reduction> take_deferred(const PrintedLoop& loop, const Reduction& sum);

  const LoopAnalysis& analysis_;
  std::map<ValueId, Reduction> deferred_;  // by maximum: not exchanged yet; none at the end
};

}  // namespace tilewright::cuda
