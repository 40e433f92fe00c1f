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
class KernelPrinter : public PrinterState {
 public:
  explicit KernelPrinter(Printing& printing) : PrinterState(printing) {}
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

  friend class PrinterParts;

  Pipeline* pipeline_ = nullptr;
  struct Parameter {
    std::string type, name;
    bool is_address = false;
  };
  std::vector<Parameter> parameters_;
  std::vector<std::string> map_names_;  // of the kernel's tensor maps
  bool previous_waited_ = false;        // for the kernel before
  ExpressionPrinter expressions_{*this};
  RegisterPrinter registers_{*this, expressions_};
  ProgramPrinter programs_{*this};
  ScalarPrinter scalar_printer_{*this};
  ExchangePrinter exchanges_{*this};
  ElementPrinter elements_{*this};
};

}  // namespace tilewright::cuda
