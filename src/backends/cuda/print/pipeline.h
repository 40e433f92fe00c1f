// Pipeline: how the loops of a kernel are fed, and which programs a block carries out. The printer of what
// all kernels have asks it first.
#pragma once

#include "backends/cuda/print/kernel_printer.h"
#include "backends/cuda/print/printer_parts.h"

namespace tilewright::cuda {

class Pipeline : public PrinterParts {
 public:
  virtual ~Pipeline() = default;
  virtual void print_body() = 0;
  // Whether it prints a loop of the kernel itself, and has.
  virtual bool print_loop(const Step&) { return false; }
  // Whether it brings what an element loop loads by an instruction, and has said where that is.
  virtual bool bring_load(PrintedLoop&, std::size_t) { return false; }
  // Whether it prints how the threads take a load into the registers that are declared.
  virtual bool take_load(const PrintedLoop&, const Op&, const Registers&) { return false; }

 protected:
  using PrinterParts::PrinterParts;
};

}  // namespace tilewright::cuda
