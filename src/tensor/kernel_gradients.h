// Gradients of hand-written kernels: calls of a TileFunction in a function that is differentiated, and the
// gradients that its user gives for them.
#pragma once

#include "tensor/trace.h"

namespace tilewright::detail {

// The values of tensors that `trace`, of value_and_grad(), has recorded or captured: what they are made of is
// run, and recorded still. `what` the kernel is called where they have none yet, or another derivative is
// taken.
std::vector<Tensor> values_now(const std::shared_ptr<Trace>& trace, const std::vector<Tensor>& tensors,
                               const std::shared_ptr<ContextState>& context, const std::string& what,
                               const Location& where);

// Notes a call in `trace`: what was read is recorded there, what was made has memory, and becomes an input.
// Returns what stands for it there.
std::vector<Tensor> note_kernel(const std::shared_ptr<Trace>& trace, const std::vector<Tensor>& read,
                                KernelCall call);

// The graph of a function with such calls, for passes::differentiate(): output 0 is a scalar whose gradients
// are those of the function's value, the others are the function's own. The kernels' gradients are asked for,
// the last call's first, with the mutex open, and become inputs of the trace. `of`: what the user called.
ir::Graph with_kernel_gradients(const char* of, Trace& trace, const std::shared_ptr<ContextState>& context,
                                const Location& where);

}  // namespace tilewright::detail
