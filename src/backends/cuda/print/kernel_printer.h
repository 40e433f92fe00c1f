// KernelPrinter: one kernel's text: its head, its steps, the scalars and registers that they name. Element
// loops are ElementPrinter's, the loops that feed tensor cores and copies ahead a Pipeline's.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/plan.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_facts.h"
#include "backends/cuda/print/kernel_names.h"
#include "backends/cuda/print/printer.h"
#include "backends/cuda/print/scalar_uses.h"
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
  ElementPrinter& elements() { return elements_; }

  using IndexText = printer::IndexText;
  using Instr = printer::Instr;
  using ElementLoop = printer::ElementLoop;
  using Step = printer::Step;
  using ValueId = tile::ValueId;
  using Op = tile::Op;

  // --- head and steps (print_kernel.cpp)
  std::string header_comment() const;
  std::string signature();
  void print_thread_coordinates(Text& head);
  void print_steps(const std::vector<Step>& steps);
  void print_steps_after_wait(const std::vector<Step>& steps);
  void print_step(const Step& step);
  void print_scalar(const tile::Op& op);
  void print_loop(const Step& step);
  bool counts_in_32_bits(const tile::Op& loop) const;
  void open_loop(const Step& step);
  void close_loop();
  void print_branch(const Step& step);
  void print_assign(const Step& step);
  void print_program_ids();
  void index_scalars();
  void wait_for_cluster();
  bool overlaps() const { return plan_.options.arch.overlaps_launches(); }  // the launch of this kernel
  void wait_for_previous();
  void declare_buffers(const std::vector<Step>& steps);
  TypedText program_id(int axis);
  std::string longest_first_id(int axis) const;
  IndexText grid(int axis) const;  // programs along it

  // --- names
  ThreadNames thread(const TileFrame& frame);
  void need(const std::string& header) { headers_.insert(header); }

  // --- registers
  Registers converted(ValueId v, ThreadLayout layout);
  enum class StageSide : unsigned char { put, take };
  // How a tile lies in shared memory: rows `pitch` elements apart, from `offset` on. Transposed: the tile's
  // rows are the stage's columns.
  struct StageLayout {
    std::string type;
    std::vector<Index> shape;
    Index pitch = 1;
    Index offset = 0;
    bool transposed = false;
  };
  void move_through_stage(const Registers& r, StageSide side, const StageLayout& stage);

  // --- memory (print_memory.cpp)
  void print_scalar_effect(const tile::Op& op);

  // --- loads that a pipeline copies ahead
  bool walks() const { return walks_programs(schedule_); }
  const Op* scalar_definition(ValueId v) const;  // of the kernel's own body
  std::string scalar_line(ValueId v) const;      // as printed; empty: none
  ValueId same_scalar(ValueId v) const;          // the one whose variable it shares, or itself
  void print_tile_swizzle();
  std::string programs_text() const;  // all programs

  // --- threads that exchange something
  std::string exchanging_threads() const;
  std::string thread_of_program() const;
  std::string exchange_place(const std::string& type) const;
  // --- what needs values in other registers than their own (print_relayout.cpp)
  void print_relayout(const Step& step);
  void print_dot(const Step& step);
  void print_barrier();

 private:
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
  std::vector<std::string> map_names_;       // of the kernel's tensor maps

  KernelNames names_;
  Text out_{1, names_};
  std::vector<std::string> shared_;                        // declarations of static shared memory
  std::map<ValueId, const tile::Op*> scalar_definitions_;  // of the kernel's own body
  std::map<ValueId, std::string> scalar_lines_;            // as printed
  const ScalarUses scalar_uses_;
  std::map<std::string, ValueId> equal_scalars_;  // by type and expression: of the kernel's own body
  std::map<ValueId, ValueId> same_scalar_;        // equal ones that were printed before
  std::set<std::string> headers_;
  std::map<ValueId, Registers> buffers_;
  std::set<ValueId> declared_;
  std::map<ValueId, TypedText> scalars_;
  std::map<std::pair<int, int>, ThreadNames> threads_;  // by threads per row and cluster
  std::vector<std::string> thread_lines_;
  std::set<int> program_axes_;
  int loop_depth_ = 0;    // exchanges inside loops alternate between two scratches
  bool stepped_ = false;  // `step` is declared
  bool cluster_waited_ = false;
  bool previous_waited_ = false;  // for the kernel before
  ExpressionPrinter expressions_{*this};
  RegisterPrinter registers_{*this, expressions_};
  ElementPrinter elements_{*this};
};

}  // namespace tilewright::cuda
