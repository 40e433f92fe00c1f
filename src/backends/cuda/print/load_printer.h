// LoadPrinter: what an element loop loads: addresses, predicates, and the registers that take it.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/print/loop_analysis.h"

#include <map>

namespace tilewright::cuda {

class LoadPrinter : PrinterParts {
 public:
  LoadPrinter(KernelPrinter& k, const LoopAnalysis& analysis) : PrinterParts(k), analysis_(analysis) {}

  // All loads, but for those that come piece by piece; those of the piece that is printed.
  void print_loads(PrintedLoop& loop);
  void print_piece_loads(PrintedLoop& loop, Part part);
  // A load of an element loop that is printed later: its registers, which that loop finds until they are
  // forgotten, and what fills them, each time.
  void declare_ahead(PrintedLoop& loop, std::size_t i);
  void print_filling(PrintedLoop& loop, std::size_t i);
  void forget_ahead() { ahead_.clear(); }
  // A row of each piece that the copy engine brought, from its stage.
  void print_fetched_rows(PrintedLoop& loop);
  Address print_address(const PrintedLoop& loop, const Instr& in, const Access& access);
  Bounds print_bounds(const PrintedLoop& loop, const Instr& in, const Access& access);
  // Names how many elements behind an aligned place the row of an access begins.
  void print_shift(const Access& access, const std::string& name);

 private:
  struct LoadText {
    std::string place, cache, fill, guard;
  };
  std::string load_of_shifted_row(const PrintedLoop& loop, const Address& a, const LoadText& load);
  void print_load(PrintedLoop& loop, std::size_t i);
  Registers loaded(const PrintedLoop& loop, const Instr& in);

  const LoopAnalysis& analysis_;
  const Pieces* piece_ = nullptr;         // that is loaded
  std::map<const Op*, Registers> ahead_;  // of loads that stand ahead of their loops
};

}  // namespace tilewright::cuda
