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
  // Prints a loop of the kernel, if the pipeline does so itself; whether it did.
  virtual bool print_loop(const Step&) { return false; }
  // Says where an element loop finds what an instruction loads, if the pipeline brings it; whether it did.
  virtual bool bring_load(PrintedLoop&, std::size_t) { return false; }
  // Prints how the tiles of an element loop come to where its threads read them, in front of its loads, and
  // how its results leave, behind it; if the pipeline moves them.
  virtual void bring_tiles(const PrintedLoop&) {}
  virtual void send_tiles(const PrintedLoop&) {}
  // The pointer to the tile that a load or a store has in shared memory; empty where it has none.
  virtual std::string tile_in_shared(const Op&) const { return {}; }
  // Prints how threads take a load into the declared registers, if the pipeline knows; whether it did.
  virtual bool take_load(const PrintedLoop&, const Op&, const Registers&) { return false; }

 protected:
  using PrinterParts::PrinterParts;
};

}  // namespace tilewright::cuda
