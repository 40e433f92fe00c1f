// PrinterParts: what the larger parts of a kernel's printer, and its pipelines, write with.
#pragma once

#include "backends/cuda/print/register_printer.h"

namespace tilewright::cuda {

class PrinterParts : protected PrinterState {
 protected:
  explicit PrinterParts(KernelPrinter& k);

  KernelPrinter& k_;
  ExpressionPrinter& expressions_;
  RegisterPrinter& registers_;
};

}  // namespace tilewright::cuda
