// PrinterState: what the parts of a kernel's printer, and its pipelines, write with: a kernel's Printing and
// its plan, by their own names.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/plan.h"
#include "backends/cuda/print/element_loop.h"
#include "backends/cuda/print/kernel_facts.h"
#include "backends/cuda/print/kernel_names.h"
#include "backends/cuda/print/text.h"
#include "backends/printer/index_text.h"
#include "backends/printer/loop_plan.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tilewright::cuda {

class KernelPrinter;

// What is written while a kernel is printed, and what is known of it.
struct Printing {
  Printing(const tile::Kernel& printed, const CudaPlan& printed_plan);

  const tile::Kernel& kernel;
  const CudaPlan& plan;
  const KernelFacts facts;
  const bool crowded;  // a thread holds many elements: registers decide
  std::vector<printer::Accuracy> accuracy;
  KernelNames names;
  Text out{1, names};
  std::vector<std::string> shared = {};
  std::set<std::string> headers = {};
  std::map<tile::ValueId, Registers> buffers = {};
  std::set<tile::ValueId> declared = {};
  std::map<tile::ValueId, TypedText> scalars = {};
  int loop_depth = 0;
  bool stepped = false;
};

class PrinterState {
  Printing& printing_;

 protected:
  using IndexText = printer::IndexText;
  using Step = printer::Step;
  using Instr = printer::Instr;
  using ElementLoop = printer::ElementLoop;
  using ValueId = tile::ValueId;
  using Op = tile::Op;

  explicit PrinterState(Printing& printing) : printing_(printing) {}
  explicit PrinterState(KernelPrinter& k);  // the same

  void need(const std::string& header) { headers_.insert(header); }  // of device/tw_cuda

  const tile::Kernel& kernel_ = printing_.kernel;
  const CudaPlan& plan_ = printing_.plan;
  const tile::Schedule& schedule_ = printing_.plan.schedule;
  const printer::LoopPlan& loops_ = *printing_.plan.loops;
  const std::vector<printer::ValueRange>& ranges_ = printing_.plan.ranges;
  const Layouts& layouts_ = printing_.plan.layouts;
  const KernelFacts& facts_ = printing_.facts;
  const std::optional<TensorDot>& dot_ = printing_.plan.dots.dot;
  const std::optional<B2bMatmul>& b2b_ = printing_.plan.dots.b2b;
  Text& out_ = printing_.out;
  std::map<ValueId, TypedText>& scalars_ = printing_.scalars;
  std::map<ValueId, Registers>& buffers_ = printing_.buffers;
  KernelNames& names_ = printing_.names;
  std::set<ValueId>& declared_ = printing_.declared;
  std::set<std::string>& headers_ = printing_.headers;
  std::vector<std::string>& shared_ = printing_.shared;            // declarations of static shared memory
  std::vector<printer::Accuracy>& accuracy_ = printing_.accuracy;  // values of the loop that is printed
  const bool& crowded_ = printing_.crowded;
  int& loop_depth_ = printing_.loop_depth;  // exchanges inside loops alternate between two scratches
  bool& stepped_ = printing_.stepped;       // `step` is declared
};

}  // namespace tilewright::cuda
