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

PrinterState::PrinterState(Printing& p)
    : kernel_(p.kernel),
      plan_(p.plan),
      schedule_(p.plan.schedule),
      loops_(*p.plan.loops),
      ranges_(p.plan.ranges),
      layouts_(p.plan.layouts),
      facts_(p.facts),
      dot_(p.plan.dots.dot),
      b2b_(p.plan.dots.b2b),
      out_(p.out),
      scalars_(p.scalars),
      buffers_(p.buffers),
      names_(p.names),
      declared_(p.declared),
      headers_(p.headers),
      shared_(p.shared),
      accuracy_(p.accuracy),
      crowded_(p.crowded),
      loop_depth_(p.loop_depth),
      stepped_(p.stepped) {}

PrinterState::PrinterState(KernelPrinter& k) : PrinterState(static_cast<PrinterState&>(k)) {}

PrinterParts::PrinterParts(KernelPrinter& k)
    : PrinterState(k), k_(k), expressions_(k.expressions_), registers_(k.registers_) {}

}  // namespace tilewright::cuda
