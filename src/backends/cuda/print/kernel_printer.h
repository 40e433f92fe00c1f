// KernelPrinter: the state of printing one kernel. Its parts are in print_*.cpp: head and steps, element
// loops, memory, expressions, exchanges between threads.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/plan.h"
#include "backends/cuda/print/kernel_facts.h"
#include "backends/cuda/print/kernel_names.h"
#include "backends/cuda/print/masked_rounds.h"
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

// An expression and the C++ type it has ("i32" for an i64 that is known to fit).
struct TypedText {
  std::string text;
  std::string type;
  int operations = 0;  // in the text, names and elements of arrays being none
};

class Pipeline;

// What all kernels have. A pipeline prints the loops that are its own, with the functions here.
class KernelPrinter {
 public:
  KernelPrinter(const tile::Kernel& kernel, const CudaPlan& plan);
  backends::Source run(Pipeline& pipeline);

  const tile::Kernel& kernel() const { return kernel_; }
  const CudaPlan& plan() const { return plan_; }
  Text& out() { return out_; }
  const KernelNames& names() const { return names_; }
  const tile::Op& definition(tile::ValueId v) const {
    return *facts_.definitions[static_cast<std::size_t>(v)];
  }
  const std::string& map_name(std::size_t map) const { return map_names_[map]; }
  // The rows of a thread that element loops walk now; not set: all.
  std::optional<std::pair<Index, Index>>& row_window() { return row_window_; }
  // Masks that hold unless the variable `masked` is true; null: none.
  const KnownMasks*& known_masks() { return known_masks_; }

  using IndexText = printer::IndexText;
  using Instr = printer::Instr;
  using ElementLoop = printer::ElementLoop;
  using Step = printer::Step;
  using ValueId = tile::ValueId;
  using Op = tile::Op;

  // An array that holds one value spread over the threads.
  struct Registers {
    std::string name;
    ThreadLayout layout;
    DType dtype;
    std::string type;     // of an element
    bool staged = false;  // not in registers: `name` points to this thread's slots of shared memory
    Index rows = 0;       // of a thread's rows so many are there, in turn, or one for all of them; 0: all
  };
  // Names of a thread's coordinates for one way of standing in rows.
  struct Thread {
    std::string t, g;
  };
  struct Bounds {
    bool rows = false, cols = false;  // predicates needed
    bool whole = true;                // column vectors are in or out as a whole
    std::string first_row, end_row, first_col, end_col;
    std::string uniform;  // condition on the other dimensions; empty: none
  };
  struct Address {
    std::string base;          // pointer variable of this thread
    std::string row_term;      // elements from r = 0 to r
    std::string col_step;      // elements from one c to the next
    std::string element_step;  // "" when contiguous
  };
  // A factor of the products that a row's sum is made of: the f32 that they multiply, and the instruction
  // whose registers are it in `type`; the same where bytes become it.
  struct InnerFactor {
    int instr = -1, source = -1;
    DType type = DType::bf16;
  };
  // One sum, or two that share a factor; instructions of the sums.
  struct InnerProduct {
    int first_sum = -1, second_sum = -1;
    InnerFactor first = {}, second = {}, by = {};
    std::string sums = {};
  };
  // One element loop while it is printed.
  struct Loop {
    const ElementLoop* plan;
    ThreadLayout layout;
    TileFrame frame;
    std::vector<TypedText> values;    // by instruction; empty text: not yet computed here
    std::vector<Registers> arrays;    // by instruction: loads and reloads
    std::vector<int> uses;            // by instruction
    std::vector<std::string> states;  // by instruction: reduction accumulators
    std::vector<Bounds> bounds;       // by instruction: stores
    std::vector<Address> addresses;
    std::vector<std::string> outputs;  // by instruction: the vector that a store or a keep collects
    std::vector<bool> wide;            // by instruction: stores of four vectors at once, see is_wide_store
    Pieces pieces;
    std::vector<InnerProduct> inner;  // sums on tensor cores
    Thread thread;
  };
  enum class Level : unsigned char { once, row, element };
  // constant + row · (row index) + col · (column index), where `divisor` divides the constant part.
  struct IndexForm {
    Index row = 0, col = 0;
    Index divisor = 1;
  };

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
  Thread thread(const TileFrame& frame);
  void need(const std::string& header) { headers_.insert(header); }

  // --- element loops (print_elements.cpp)
  void print_elements(const ElementLoop& loop);
  Loop begin_elements(const ElementLoop& loop);
  void count_uses(Loop& loop) const;
  Level level(const Loop& loop, const Instr& in) const;
  void print_row_body(Loop& loop);
  void print_columns(Loop& loop);
  void print_column_body(Loop& loop);
  void print_at(Loop& loop, Level at);
  void print_compute(Loop& loop, std::size_t i);
  void guard_known_mask(const Op& op, std::vector<TypedText>& operands) const;
  void print_store(Loop& loop, std::size_t i);
  void print_keep(Loop& loop, std::size_t i);
  void print_reduce(Loop& loop, std::size_t i);
  void print_scattered(Loop& loop, std::size_t i);
  void print_vector_heads(Loop& loop);
  void print_vector_tails(Loop& loop);
  std::optional<IndexForm> index_form(const Loop& loop, const printer::Ref& ref) const;
  bool draws_fours(const Loop& loop, std::size_t i) const;
  std::optional<std::size_t> tanh_beside_one(const Loop& loop, const Instr& in) const;
  bool is_vector_store(const Loop& loop, std::size_t i) const;
  bool is_wide_store(const Loop& loop, std::size_t i) const;
  void print_wide_columns(Loop& loop);
  void print_quad(Loop& loop, const std::string& first, const std::string& index);
  void print_vector_elements(Loop& loop);
  bool direct_copy(const Loop& loop, std::size_t i) const;
  bool keeps_load(const Loop& loop, std::size_t i) const;
  TypedText operand(Loop& loop, const printer::Ref& ref);
  std::string effect_guard(const Loop& loop) const;
  std::string row_text(const Loop& loop) const;
  std::string row_step_text(const TileFrame& frame, const std::function<std::string(Index)>& scaled) const;
  std::string col_text(const Loop& loop) const;
  std::optional<std::string> column_offset(Loop& loop, const printer::Ref& ref);
  struct ColumnTest {
    bool equal;
    std::string number;  // what is compared with the column's place in the thread's part of the row
  };
  std::optional<ColumnTest> column_test(Loop& loop, const Instr& in);
  TypedText column_test_text(const Loop& loop, const ColumnTest& test) const;
  std::optional<std::string> vector_test(Loop& loop);
  int role(const Loop& loop, int loop_axis) const;  // 0 rows, 1 columns, -1 none
  static Part spread_of(const Loop& loop, const std::vector<int>& axes);

  // --- loops over an accumulator, piece by piece (print_pieces.cpp)
  static bool loaded_by_piece(const Loop& loop, Part part);
  void print_pieces(Loop& loop);
  void print_row_starts(Loop& loop);
  void print_tma_store(const Loop& loop);

  // --- exponentials in back-to-back matmuls (print_exp.cpp)
  struct Scaled {
    int instr;  // the product
    printer::Ref x;
    double by;
  };
  struct ExpBelow {
    int sub = -1, mul = -1;  // instructions that become part of the expression
    printer::Ref x, y;
    double scale = 1;
    bool by_column = false;      // y
    bool by_difference = false;  // x - y is rounded before it is multiplied
  };
  std::optional<double> constant_of(const Loop& loop, const printer::Ref& ref) const;
  std::optional<Scaled> scaled(const Loop& loop, const printer::Ref& ref) const;
  std::optional<Scaled> scaled_extreme(const Loop& loop, const Instr& in) const;
  std::optional<ExpBelow> exp_below(const Loop& loop, const Instr& in) const;
  bool comes_from_dot(const Loop& loop, const printer::Ref& ref) const;
  bool is_dot_sized(ValueId value) const;
  void print_exp_offsets(Loop& loop);
  TypedText exp_expr(Loop& loop, std::size_t i, const ExpBelow& below);

  // --- registers
  std::string declaration(const Registers& r) const;
  std::string at(const Registers& r) const;          // "x[r][c]"
  std::string element(const Registers& r) const;     // "x[r][c].v[v]"
  Registers buffer(ValueId v);                       // the registers a value lives in
  std::string pointer_to(const Registers& r) const;  // first vector of it
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
  std::string convert_text(const std::string& from, const std::string& to, const std::string& text);
  std::string stage_type(ValueId v) const;
  void for_registers(const Registers& r, const std::function<void()>& body);

  // --- memory (print_memory.cpp)
  void print_loads(Loop& loop);
  void print_piece_loads(Loop& loop, Part part);
  void print_load(Loop& loop, std::size_t i);
  Address print_address(const Loop& loop, const Instr& in, const Access& access);
  Bounds print_bounds(const Loop& loop, const Instr& in, const Access& access);
  std::string base_offset(const Access& access);
  std::string stride_text(const Access& access, int dim);
  std::string dim_text(const tile::Dim& dim);
  std::string load_cache(const tile::Op& op, Part part, const TileFrame& frame) const;
  std::string store_cache() const;
  TypedText scalar_load(const tile::Op& op);
  void print_scalar_effect(const tile::Op& op);
  std::string view_offset(int view, const std::vector<TypedText>& indices);

  // --- loads that a pipeline copies ahead
  std::string staged_slot(const Registers& r, const std::string& base) const;
  std::string staged_vector(const Registers& r) const;
  bool walks() const { return walks_programs(schedule_); }
  const Op* scalar_definition(ValueId v) const;  // of the kernel's own body
  std::string scalar_line(ValueId v) const;      // as printed; empty: none
  ValueId same_scalar(ValueId v) const;          // the one whose variable it shares, or itself
  void print_tile_swizzle();
  std::string programs_text() const;  // all programs

  // --- expressions (print_expressions.cpp)
  TypedText scalar(ValueId v);
  TypedText compute(const tile::Op& op, const std::vector<TypedText>& operands);
  TypedText op_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  TypedText cast_expr(const tile::Op& op, const TypedText& from);
  TypedText apply_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  bool compares_in_32_bits(const tile::Op& op, const std::vector<TypedText>& operands) const;
  TypedText gather_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  std::string type_of(ValueId v) const;
  const printer::ValueRange& range(ValueId v) const { return ranges_[static_cast<std::size_t>(v)]; }
  std::string as_type(const TypedText& e, const std::string& type) const;
  bool only_stored(ValueId v) const;  // every use rounds it to its narrow type

  // --- reductions and scans (print_reductions.cpp)
  struct Reduction {
    std::size_t instr;
    std::string monoid;      // "Max"
    std::string state;       // variable
    std::string type;        // of the state
    std::string value_type;  // of the value in the state
  };
  Reduction reduction(const Loop& loop, std::size_t i) const;
  void print_reduction_starts(Loop& loop);
  void print_reduction_starts_of_row(Loop& loop);
  void print_exchange(Loop& loop);
  void print_row_exchange(Loop& loop, const std::vector<Reduction>& reductions);
  void print_column_exchange(const Loop& loop, const Reduction& reduction);
  void print_cluster_columns(const Loop& loop, const std::vector<Reduction>& reductions);
  std::string exchanging_threads() const;
  std::string thread_of_program() const;
  std::string exchange_place(const std::string& type) const;
  // One exchange for a maximum and the sum of powers below it (print_powers.cpp)
  bool print_own_maximum(const Loop& loop, const Reduction& max);
  std::optional<Reduction> take_deferred(const Loop& loop, const Reduction& sum);
  void print_scaled_extreme(Loop& loop, const Reduction& reduction);
  std::optional<int> packed_extreme(const Loop& loop, const Instr& in) const;
  void print_packed_extremes(Loop& loop);
  // --- sums of products on tensor cores (print_inner.cpp)
  bool has_inner_products(const Loop& loop) const;
  std::optional<InnerFactor> inner_factor(const Loop& loop, const printer::Ref& ref) const;
  std::optional<std::pair<InnerFactor, InnerFactor>> inner_factors(const Loop& loop, const Instr& in) const;
  void choose_inner_products(Loop& loop) const;
  static bool is_inner_sum(const Loop& loop, std::size_t i);
  void print_inner_starts(Loop& loop);
  void print_inner_products(Loop& loop);
  void print_inner_ends(Loop& loop);
  // --- integers of 8 and 4 bits as floats (print_bytes.cpp)
  struct WidenedBytes {
    int array = -1;                          // instruction: loaded bytes
    std::optional<printer::Ref> count = {};  // of (byte << count) >> 4
    std::vector<int> parts = {};             // instructions that become part of the conversion
  };
  static bool is_array(const Instr& in);  // its registers hold a loaded or kept value
  std::optional<WidenedBytes> widened_bytes(const Loop& loop, const Instr& in) const;
  std::optional<Index> constant_integer(const Loop& loop, const printer::Ref& ref) const;
  bool only_kept(const Loop& loop, std::size_t i) const;
  bool keeps_widened(const Loop& loop, std::size_t i) const;
  void print_widened(Loop& loop, std::size_t i, const WidenedBytes& bytes);
  std::string widened_text(Loop& loop, const WidenedBytes& bytes, const std::string& to);
  void print_reduction_end(Loop& loop, const Reduction& reduction);
  void print_scans(Loop& loop);
  // --- what needs values in other registers than their own (print_relayout.cpp)
  void print_relayout(const Step& step);
  void print_dot(const Step& step);
  void print_barrier();

 private:
  friend class PipelineText;

  const tile::Kernel& kernel_;
  const CudaPlan& plan_;
  Pipeline* pipeline_ = nullptr;
  const tile::Schedule& schedule_;
  const printer::LoopPlan& loops_;
  const std::vector<printer::ValueRange>& ranges_;
  const Layouts& layouts_;
  const std::optional<TensorDot>& dot_;  // when tensor cores run the kernel's dots: one, or
  const std::optional<B2bMatmul>& b2b_;
  const std::optional<TileStore>& result_;  // that the copy engine stores
  const KernelFacts facts_;
  std::vector<printer::Accuracy> accuracy_;  // values of the loop that is printed
  bool outside_ = false;  // the vector that is printed holds none of the columns that are tested for
  bool crowded_ = false;  // a thread holds many elements: registers decide
  Index piece_vectors_ = 0, piece_rows_ = 0;  // of the piece that is loaded
  std::vector<std::string> map_names_;        // of the kernel's tensor maps

  KernelNames names_;
  Text out_{1, names_};
  std::vector<std::string> shared_;                        // declarations of static shared memory
  std::vector<std::string> wide_parts_;                    // of the loop that is printed, by instruction
  std::map<ValueId, const tile::Op*> scalar_definitions_;  // of the kernel's own body
  std::map<ValueId, std::string> scalar_lines_;            // as printed
  const ScalarUses scalar_uses_;
  std::map<std::string, ValueId> equal_scalars_;  // by type and expression: of the kernel's own body
  std::map<ValueId, ValueId> same_scalar_;        // equal ones that were printed before
  std::set<std::string> headers_;
  std::map<ValueId, Registers> buffers_;
  std::set<ValueId> declared_;
  std::map<ValueId, TypedText> scalars_;
  std::map<std::pair<int, int>, Thread> threads_;  // by threads per row and cluster
  std::vector<std::string> thread_lines_;
  std::set<int> program_axes_;
  // The rows of a thread that element loops walk now; not set: all.
  std::optional<std::pair<Index, Index>> row_window_;
  const KnownMasks* known_masks_ = nullptr;
  int loop_depth_ = 0;    // exchanges inside loops alternate between two scratches
  bool stepped_ = false;  // `step` is declared
  bool cluster_waited_ = false;
  bool previous_waited_ = false;           // for the kernel before
  std::map<ValueId, Reduction> deferred_;  // by maximum: not exchanged yet; none at the end
};

}  // namespace tilewright::cuda
