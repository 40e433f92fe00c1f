// LoopAnalysis: what the instructions of an element loop become when they are printed. It asks and prints
// nothing.
#pragma once

#include "backends/cuda/analysis/neighbours.h"
#include "backends/cuda/print/element_loop.h"
#include "backends/cuda/print/printer_parts.h"

#include <optional>
#include <string>
#include <utility>

namespace tilewright::cuda {

class LoopAnalysis : PrinterParts {
 public:
  explicit LoopAnalysis(KernelPrinter& k) : PrinterParts(k) {}

  // --- how often an instruction is printed
  enum class Level : unsigned char { once, row, element };
  Level level(const PrintedLoop& loop, const Instr& in) const;
  void count_uses(PrintedLoop& loop) const;

  // --- random words (print_random.cpp)
  // How many runs of the cipher, which gives four words, a thread needs for its elements: one for each; one
  // for four columns that lie side by side in it; or one for each of four lanes' elements, which exchange
  // theirs.
  enum class Draws : unsigned char { apart, four_columns, across_columns, across_rows };
  Draws draws(const PrintedLoop& loop, std::size_t i) const;
  Index column_step_of_counter(const PrintedLoop& loop, std::size_t i) const;

  // --- indices (print_indices.cpp)
  std::optional<std::size_t> tanh_beside_one(const PrintedLoop& loop, const Instr& in) const;

  // --- indexed accesses of whole vectors (print_neighbours.cpp)
  bool gathers_vector(const PrintedLoop& loop, std::size_t i) const;
  bool masks_vector(const PrintedLoop& loop, std::size_t i) const;
  bool adds_vector(const PrintedLoop& loop, std::size_t i) const;
  bool of_neighbours(const PrintedLoop& loop, std::size_t i) const {
    return gathers_vector(loop, i) || masks_vector(loop, i) || adds_vector(loop, i);
  }

  // --- loads and stores (print_stores.cpp)
  bool is_vector_store(const PrintedLoop& loop, std::size_t i) const;
  bool is_wide_store(const PrintedLoop& loop, std::size_t i) const;
  bool direct_copy(const PrintedLoop& loop, std::size_t i) const;
  bool keeps_load(const PrintedLoop& loop, std::size_t i) const;
  // The keep of what i computes, a number a row, in registers of the same type.
  std::optional<std::size_t> keep_of_row(const PrintedLoop& loop, std::size_t i) const;

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
  std::optional<Scaled> scaled(const PrintedLoop& loop, const printer::Ref& ref) const;
  std::optional<Scaled> scaled_extreme(const PrintedLoop& loop, const Instr& in) const;
  std::optional<ExpBelow> exp_below(const PrintedLoop& loop, const Instr& in) const;

  // --- integers of 8 and 4 bits as floats (print_bytes.cpp), maxima of pairs (print_vectors.cpp)
  struct WidenedBytes {
    int array = -1;                          // instruction: loaded bytes
    std::optional<printer::Ref> count = {};  // of (byte << count) >> 4
    std::vector<int> parts = {};             // instructions that become part of the conversion
  };
  std::optional<WidenedBytes> widened_bytes(const PrintedLoop& loop, const Instr& in) const;
  bool keeps_widened(const PrintedLoop& loop, std::size_t i) const;
  bool only_kept(const PrintedLoop& loop, std::size_t i) const;
  std::optional<int> packed_extreme(const PrintedLoop& loop, const Instr& in) const;

  // --- sums of products on tensor cores (print_inner.cpp)
  void choose_inner_products(PrintedLoop& loop) const;

  // A constant that an operand is.
  std::optional<double> constant_of(const PrintedLoop& loop, const printer::Ref& ref) const;
  std::optional<Index> constant_integer(const PrintedLoop& loop, const printer::Ref& ref) const;

 private:
  Neighbours neighbours(const PrintedLoop& loop) const;
  bool comes_from_dot(const PrintedLoop& loop, const printer::Ref& ref) const;
  bool is_dot_sized(ValueId value) const;
  std::optional<InnerFactor> inner_factor(const PrintedLoop& loop, const printer::Ref& ref) const;
  std::optional<std::pair<InnerFactor, InnerFactor>> inner_factors(const PrintedLoop& loop,
                                                                   const Instr& in) const;
  bool has_inner_products(const PrintedLoop& loop) const;
};

}  // namespace tilewright::cuda
