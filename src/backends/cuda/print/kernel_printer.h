// KernelPrinter: one kernel's text: its head, its steps, the scalars and registers that they name. Element
// loops are ElementPrinter's, the loops that feed tensor cores and copies ahead a Pipeline's.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/plan.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/exchange_printer.h"
#include "backends/cuda/print/kernel_facts.h"
#include "backends/cuda/print/kernel_names.h"
#include "backends/cuda/print/printer.h"
#include "backends/cuda/print/program_printer.h"
#include "backends/cuda/print/scalar_printer.h"
#include "backends/cuda/print/text.h"
#include "backends/printer/index_text.h"
#include "backends/printer/loop_plan.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cuda {

class Pipeline;

// What all kernels have. A pipeline prints the loops that are its own, with the functions here.
class KernelPrinter {
 public:
  KernelPrinter(const tile::Kernel& kernel, const CudaPlan& plan);
  KernelPrinter(const KernelPrinter&) = delete;
  KernelPrinter& operator=(const KernelPrinter&) = delete;
  backends::Source run(Pipeline& pipeline);

  const tile::Kernel& kernel() const { return kernel_; }
  const CudaPlan& plan() const { return plan_; }
  Text& out() { return out_; }
  const KernelNames& names() const { return names_; }
  const tile::Op& definition(tile::ValueId v) const {
    return *facts_.definitions[static_cast<std::size_t>(v)];
  }
  const std::string& map_name(std::size_t map) const { return map_names_[map]; }
  const std::vector<std::string>& map_names() const { return map_names_; }
  Pipeline& pipeline() { return *pipeline_; }
  ExpressionPrinter& expressions() { return expressions_; }
  ProgramPrinter& programs() { return programs_; }
  ScalarPrinter& scalars() { return scalar_printer_; }
  ExchangePrinter& exchanges() { return exchanges_; }
  ElementPrinter& elements() { return elements_; }

  using IndexText = printer::IndexText;
  using Instr = printer::Instr;
  using ElementLoop = printer::ElementLoop;
  using Step = printer::Step;
  using ValueId = tile::ValueId;
  using Op = tile::Op;

  // Steps of the loop plan, one after another; those that a pipeline places behind a wait of its own.
  void print_steps(const std::vector<Step>& steps);
  void print_steps_after_wait(const std::vector<Step>& steps);
  void print_step(const Step& step);
  // A loop of the kernel: its head with the counter's name, and its end.
  void open_loop(const Step& step);
  void close_loop();
  void declare_buffers(const std::vector<Step>& steps);
  // Prints the wait for the end of the kernel before this one, which a launch may overlap.
  void wait_for_previous();

 private:
  std::string header_comment() const;
  void name_parameters();
  std::string signature() const;
  int together() const;
  std::string print_together(const std::string& global, const std::string& body) const;
  void print_loop(const Step& step);
  void print_branch(const Step& step);
  void print_assign(const Step& step);
  bool counts_in_32_bits(const tile::Op& loop) const;
  bool overlaps() const { return plan_.options.arch.overlaps_launches(); }  // the launch of this kernel
  void need(const std::string& header) { headers_.insert(header); }

  friend class PrinterParts;
  friend class PrinterState;

  const tile::Kernel& kernel_;
  const CudaPlan& plan_;
  Pipeline* pipeline_ = nullptr;
  const tile::Schedule& schedule_;
  const printer::LoopPlan& loops_;
  const std::vector<printer::ValueRange>& ranges_;
  const Layouts& layouts_;
  const std::optional<TensorDot>& dot_;  // when tensor cores run the kernel's dots: one, or
  const std::optional<B2bMatmul>& b2b_;
  const KernelFacts facts_;
  std::vector<printer::Accuracy> accuracy_;  // values of the loop that is printed
  bool crowded_ = false;                     // a thread holds many elements: registers decide
  struct Parameter {
    std::string type, name;
    bool is_address = false;
  };
  std::vector<Parameter> parameters_;
  std::vector<std::string> map_names_;  // of the kernel's tensor maps

  KernelNames names_;
  Text out_{1, names_};
  std::vector<std::string> shared_;  // declarations of static shared memory
  std::set<std::string> headers_;
  std::map<ValueId, Registers> buffers_;
  std::set<ValueId> declared_;
  std::map<ValueId, TypedText> scalars_;
  int loop_depth_ = 0;            // exchanges inside loops alternate between two scratches
  bool stepped_ = false;          // `step` is declared
  bool previous_waited_ = false;  // for the kernel before
  ExpressionPrinter expressions_{*this};
  RegisterPrinter registers_{*this, expressions_};
  ProgramPrinter programs_{*this};
  ScalarPrinter scalar_printer_{*this};
  ExchangePrinter exchanges_{*this};
  ElementPrinter elements_{*this};
};

}  // namespace tilewright::cuda
