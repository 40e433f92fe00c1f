// Once more what the kernel's body computes from the program id, for another program: the same names, in the
// function or the threads that fetch.
#pragma once

#include "backends/cuda/print/pipeline.h"

namespace tilewright::cuda {

class Foresight : PrinterParts {
 public:
  explicit Foresight(KernelPrinter& k) : PrinterParts(k) {}
  void begin();
  // A scalar of the kernel's own body and what it is made of; others are the fetching side's own.
  void print(ValueId v);

 private:
  std::set<ValueId> printed_;
  std::set<int> axes_;
};

}  // namespace tilewright::cuda
