// The plan and the state of a kernel's printer, for its parts.
#include "backends/cuda/print/printer_state.h"

#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

Printing::Printing(const tile::Kernel& printed, const CudaPlan& printed_plan)
    : kernel(printed),
      plan(printed_plan),
      facts(kernel),
      crowded(cuda::crowded(kernel, plan.schedule)),
      accuracy(facts.accuracy),
      names(kernel, *plan.loops) {}

PrinterState::PrinterState(KernelPrinter& k) : PrinterState(static_cast<PrinterState&>(k).printing_) {}

PrinterParts::PrinterParts(KernelPrinter& k)
    : PrinterState(k), k_(k), expressions_(k.expressions_), registers_(k.registers_) {}

}  // namespace tilewright::cuda
