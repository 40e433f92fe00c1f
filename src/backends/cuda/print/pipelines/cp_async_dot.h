// The schedules mma_dot and fma_blocks: all threads copy the blocks of later steps into shared memory
// (cp.async) while they multiply the present ones, by mma.sync or, in f32, on the ordinary units. They take
// what the copy engine cannot: odd strides, unaligned views, and devices before sm_90.
#pragma once

#include "backends/cuda/print/pipelines/elements.h"

namespace tilewright::cuda {

// One operand's block, of type `block`, of the step whose loads' starts are the scalars' names now: from
// memory to `to`, by all threads.
void print_copy(KernelPrinter& k, const std::string& block, const std::string& to,
                const TensorOperand& operand);

// Prints the types of the blocks of a dot's operands and their places in shared memory.
void print_dot_blocks(KernelPrinter& k);

class CpAsyncDot final : public Elements {
 public:
  explicit CpAsyncDot(KernelPrinter& k) : Elements(k) {}
  bool print_loop(const Step& step) override;

 private:
  void print_wait(int ahead);
  void print_first_parts(const TileFrame& frame, int ahead);
  void print_multiply(const Registers& acc, const TileFrame& frame, int ahead);
};

}  // namespace tilewright::cuda
