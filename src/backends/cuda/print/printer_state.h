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
 protected:
  using IndexText = printer::IndexText;
  using Step = printer::Step;
  using Instr = printer::Instr;
  using ElementLoop = printer::ElementLoop;
  using ValueId = tile::ValueId;
  using Op = tile::Op;

  explicit PrinterState(Printing& printing);
  explicit PrinterState(KernelPrinter& k);  // the same

  void need(const std::string& header) { headers_.insert(header); }  // of device/tw_cuda

  const tile::Kernel& kernel_;
  const CudaPlan& plan_;
  const tile::Schedule& schedule_;
  const printer::LoopPlan& loops_;
  const std::vector<printer::ValueRange>& ranges_;
  const Layouts& layouts_;
  const KernelFacts& facts_;
  const std::optional<TensorDot>& dot_;
  const std::optional<B2bMatmul>& b2b_;
  Text& out_;
  std::map<ValueId, TypedText>& scalars_;
  std::map<ValueId, Registers>& buffers_;
  KernelNames& names_;
  std::set<ValueId>& declared_;
  std::set<std::string>& headers_;
  std::vector<std::string>& shared_;          // declarations of static shared memory
  std::vector<printer::Accuracy>& accuracy_;  // values of the loop that is printed
  const bool& crowded_;
  int& loop_depth_;  // exchanges inside loops alternate between two scratches
  bool& stepped_;    // `step` is declared
};

}  // namespace tilewright::cuda
