// ElementPrinter: element loops, from their loads to their stores. An element loop walks the rows, vectors
// and elements that a thread holds of a tile.
#pragma once

#include "backends/cuda/print/load_printer.h"
#include "backends/cuda/print/loop_analysis.h"
#include "backends/cuda/print/masked_rounds.h"
#include "backends/cuda/print/reduction_printer.h"

namespace tilewright::cuda {

class ElementPrinter : PrinterParts {
 public:
  explicit ElementPrinter(KernelPrinter& k)
      : PrinterParts(k), analysis_(k), loads_(k, analysis_), reductions_(k, analysis_) {}

  void print_elements(const ElementLoop& loop);
  // Loads of a loop that is printed later which may stand ahead of it: of what stands along one of its axes
  // or none, where `may` allows it and as long as there are `registers` a thread, of which it takes what they
  // need.
  struct LoadAhead {
    PrintedLoop loop;
    std::size_t instr;
  };
  std::vector<LoadAhead> loads_ahead(const ElementLoop& loop, const std::function<bool(const Op&)>& may,
                                     Index& registers);
  // Prints, in front of a product, requests for the first pieces of the tile that comes by the result's
  // stages.
  void print_first_pieces();

  // Condition on the threads of a program that carry out the effect of a loop, where several hold the same
  // elements; empty: none.
  std::string effect_guard(const PrintedLoop& loop) const;

  // Before effects that threads of this layout carry out: others that read what is written over have done so.
  // `own`: each element has one thread.
  void print_wait_for_readers(const std::vector<const Op*>& effects, ThreadLayout written, bool own);

  LoadPrinter& loads() { return loads_; }
  const ReductionPrinter& reductions() const { return reductions_; }
  // The rows of a thread that element loops walk now; not set: all.
  std::optional<std::pair<Index, Index>>& row_window() { return row_window_; }
  // Masks that hold unless the variable `masked` is true; null: none.
  const KnownMasks*& known_masks() { return known_masks_; }

 private:
  using Level = LoopAnalysis::Level;
  using ExpBelow = LoopAnalysis::ExpBelow;
  using WidenedBytes = LoopAnalysis::WidenedBytes;

  // --- rows, vectors, elements
  void print_shift(PrintedLoop& loop);
  PrintedLoop begin_elements(const ElementLoop& loop);
  void print_row_body(PrintedLoop& loop);
  void print_columns(PrintedLoop& loop);
  void print_column_body(PrintedLoop& loop);
  void print_vector_elements(PrintedLoop& loop);
  void print_wide_columns(PrintedLoop& loop);
  void print_quad(PrintedLoop& loop, const std::string& first, const std::string& index);
  void print_at(PrintedLoop& loop, Level at);
  void print_compute(PrintedLoop& loop, std::size_t i);
  TypedText operand(PrintedLoop& loop, const printer::Ref& ref);
  void guard_known_mask(const Op& op, std::vector<TypedText>& operands) const;
  void print_reduce(PrintedLoop& loop, std::size_t i);

  // --- a tile's accumulator, piece by piece (print_pieces.cpp)
  struct PieceIndex {
    printer::IndexText panel, block;
    Index rows;  // of a program, in a block
  };
  void print_pieces(PrintedLoop& loop);
  void print_row_starts(PrintedLoop& loop);
  void print_words(PrintedLoop& loop, std::size_t i);
  void print_words_of_row(PrintedLoop& loop);
  TypedText drawn_word(const PrintedLoop& loop, std::size_t i, const std::vector<TypedText>& operands);
  void print_tile_of_rows(PrintedLoop& loop, std::size_t i, const Access& access);
  void print_staged_pieces(const PrintedLoop& loop);
  void print_staged_rows(const PrintedLoop& loop, std::size_t i, const PieceIndex& piece);
  std::string piece_place(const Op& op, const TensorBlock& block, const PieceIndex& piece);
  void print_fetch(Index ahead, const PieceIndex& piece);

  // --- stores (print_stores.cpp)
  void print_wait_for_readers(const PrintedLoop& loop);
  void print_store(PrintedLoop& loop, std::size_t i);
  void print_keep(PrintedLoop& loop, std::size_t i);
  void print_scattered(PrintedLoop& loop, std::size_t i);
  void print_vector_heads(PrintedLoop& loop);
  void print_vector_tails(PrintedLoop& loop);

  // --- indexed accesses of whole vectors (print_neighbours.cpp)
  void print_neighbour_heads(PrintedLoop& loop, std::size_t i);
  TypedText gathered_vector(PrintedLoop& loop, std::size_t i, const std::vector<TypedText>& operands);

  // --- comparisons of columns with a number (print_indices.cpp)
  struct ColumnTest {
    bool equal;
    std::string number;  // what is compared with the column's place in the thread's part of the row
  };
  std::optional<printer::IndexText> column_offset(PrintedLoop& loop, const printer::Ref& ref);
  std::optional<ColumnTest> column_test(PrintedLoop& loop, const Instr& in);
  TypedText column_test_text(const PrintedLoop& loop, const ColumnTest& test) const;
  std::optional<std::string> vector_test(PrintedLoop& loop);

  // --- exponentials (print_exp.cpp), bytes (print_bytes.cpp), sums on tensor cores (print_inner.cpp)
  void print_exp_offsets(PrintedLoop& loop);
  TypedText exp_expr(PrintedLoop& loop, std::size_t i, const ExpBelow& below);
  void print_widened(PrintedLoop& loop, std::size_t i, const WidenedBytes& bytes);
  std::string widened_text(PrintedLoop& loop, const WidenedBytes& bytes, DType to);
  void print_inner_starts(PrintedLoop& loop);
  void print_inner_products(PrintedLoop& loop);
  void print_inner_ends(PrintedLoop& loop);

  LoopAnalysis analysis_;
  LoadPrinter loads_;
  ReductionPrinter reductions_;
  bool outside_ = false;  // the vector that is printed holds none of the columns that are tested for
  std::vector<std::string> wide_parts_;  // of the loop that is printed, by instruction
  std::optional<std::pair<Index, Index>> row_window_;
  const KnownMasks* known_masks_ = nullptr;
  std::string row_shift_;  // the name of a shifted row's shift, once it is printed
};

}  // namespace tilewright::cuda
