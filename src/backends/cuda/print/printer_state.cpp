// The plan and the state of a kernel's printer, for its parts.
#include "backends/cuda/print/printer_state.h"

#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

PrinterState::PrinterState(KernelPrinter& k)
    : kernel_(k.kernel_),
      plan_(k.plan_),
      schedule_(k.schedule_),
      loops_(k.loops_),
      ranges_(k.ranges_),
      layouts_(k.layouts_),
      facts_(k.facts_),
      dot_(k.dot_),
      b2b_(k.b2b_),
      out_(k.out_),
      scalars_(k.scalars_),
      buffers_(k.buffers_),
      names_(k.names_),
      declared_(k.declared_),
      headers_(k.headers_),
      shared_(k.shared_),
      accuracy_(k.accuracy_),
      crowded_(k.crowded_),
      loop_depth_(k.loop_depth_),
      stepped_(k.stepped_) {}

PrinterParts::PrinterParts(KernelPrinter& k)
    : PrinterState(k), k_(k), expressions_(k.expressions_), registers_(k.registers_) {}

}  // namespace tilewright::cuda
