// LoadPrinter: what an element loop loads: addresses, predicates, and the registers that take it.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/print/loop_analysis.h"

namespace tilewright::cuda {

class LoadPrinter : PrinterParts {
 public:
  LoadPrinter(KernelPrinter& k, const LoopAnalysis& analysis) : PrinterParts(k), analysis_(analysis) {}

  // All loads, but for those that come piece by piece; those of the piece that is printed.
  void print_loads(PrintedLoop& loop);
  void print_piece_loads(PrintedLoop& loop, Part part);
  // A row of a piece, from the stage to which the copy engine brought it.
  void print_fetched_row(PrintedLoop& loop);
  Address print_address(const PrintedLoop& loop, const Instr& in, const Access& access);
  Bounds print_bounds(const PrintedLoop& loop, const Instr& in, const Access& access);

 private:
  void print_load(PrintedLoop& loop, std::size_t i);

  const LoopAnalysis& analysis_;
  const Pieces* piece_ = nullptr;  // that is loaded
};

}  // namespace tilewright::cuda
