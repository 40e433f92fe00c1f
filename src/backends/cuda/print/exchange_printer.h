// ExchangePrinter: what threads hand to each other through shared memory: values in other registers than
// their own, operands and results of dots, and the threads that wait for each other.
#pragma once

#include "backends/cuda/print/printer_parts.h"

namespace tilewright::cuda {

class ExchangePrinter : PrinterParts {
 public:
  explicit ExchangePrinter(KernelPrinter& k) : PrinterParts(k) {}

  void print_relayout(const Step& step);
  void print_argsort(const Step& step);
  void print_dot(const Step& step);
  Registers converted(ValueId v, ThreadLayout layout);
  void print_barrier();
  void print_wait_for_program();
  std::string exchanging_threads() const;
  std::string exchange_place(const std::string& type) const;

 private:
  enum class StageSide : unsigned char { put, take };
  // How a tile lies in shared memory: rows `pitch` elements apart, from `offset` on. Transposed: the tile's
  // rows are the stage's columns.
  struct StageLayout {
    DType type;
    std::vector<Index> shape;
    Index pitch = 1;
    Index offset = 0;
    bool transposed = false;
  };
  void move_through_stage(const Registers& r, StageSide side, const StageLayout& stage);
  std::string thread_of_program() const;
};

}  // namespace tilewright::cuda
