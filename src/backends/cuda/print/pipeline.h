// Pipeline: how the loops of a kernel are fed, and which programs a block carries out. The printer of what
// all kernels have asks it first.
#pragma once

#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

// What pipelines write with: the printer, and its plan and state by their own names.
class PipelineText {
 protected:
  using Step = printer::Step;
  using Instr = printer::Instr;
  using ValueId = tile::ValueId;
  using Op = tile::Op;
  using Registers = KernelPrinter::Registers;
  using Loop = KernelPrinter::Loop;

  explicit PipelineText(KernelPrinter& k);

  KernelPrinter& k_;
  const tile::Kernel& kernel_;
  const CudaPlan& plan_;
  const tile::Schedule& schedule_;
  const printer::LoopPlan& loops_;
  const Layouts& layouts_;
  const std::optional<TensorDot>& dot_;
  const std::optional<B2bMatmul>& b2b_;
  Text& out_;
  std::map<ValueId, TypedText>& scalars_;
  std::map<ValueId, Registers>& buffers_;
  KernelNames& names_;
  std::set<ValueId>& declared_;
  int& loop_depth_;
};

class Pipeline : public PipelineText {
 public:
  virtual ~Pipeline() = default;
  virtual void print_body() = 0;
  // Whether it prints a loop of the kernel itself, and has.
  virtual bool print_loop(const Step&) { return false; }
  // Whether it brings what an element loop loads by an instruction, and has said where that is.
  virtual bool bring_load(Loop&, std::size_t) { return false; }
  // Whether it prints how the threads take a load into the registers that are declared.
  virtual bool take_load(const Loop&, const Op&, const Registers&) { return false; }

 protected:
  using PipelineText::PipelineText;
};

}  // namespace tilewright::cuda
