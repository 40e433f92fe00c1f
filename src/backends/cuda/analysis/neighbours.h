// What the integers of an element loop are in terms of rows and columns, and whether an indexed access of
// neighbouring columns is one of neighbours in memory.
#pragma once

#include "backends/printer/loop_plan.h"
#include "backends/printer/value_range.h"

#include <functional>
#include <optional>

namespace tilewright::cuda {

// constant + row · (row index) + col · (column index), where `divisor` divides the constant part.
struct IndexForm {
  Index row = 0, col = 0;
  Index divisor = 1;
};

class Neighbours {
 public:
  // side_of(axis): 0 where an axis of the loop lies along the rows, 1 along the columns, else -1. A vector of
  // `vector` columns begins at a multiple of that.
  Neighbours(const tile::Kernel& kernel, const std::vector<printer::ValueRange>& ranges,
             const printer::ElementLoop& loop, std::function<int(int)> side_of, Index vector)
      : kernel_(kernel), ranges_(ranges), loop_(loop), side_of_(std::move(side_of)), vector_(vector) {}

  std::optional<IndexForm> form(const printer::Ref& ref) const;
  // Whether a value is the same for all columns of a vector: so is what compares a column with a multiple of
  // its length.
  bool same_in_vector(const printer::Ref& ref) const;
  // Gathers of floats that one load carries out for a vector, and additions to f32 that the hardware does 16
  // bytes at a time.
  bool gathers(const printer::Instr& in) const;
  bool adds(const printer::Instr& in) const;

 private:
  bool walks_columns(const std::vector<int>& axes) const;
  std::optional<IndexForm> product(const printer::Instr& in, const IndexForm& a, const IndexForm& b) const;
  bool lies_together(const printer::Instr& in, std::size_t first_index) const;
  const printer::Instr& instr(const printer::Ref& ref) const {
    return loop_.body[static_cast<std::size_t>(ref.instr)];
  }
  const printer::ValueRange& range(tile::ValueId v) const { return ranges_[static_cast<std::size_t>(v)]; }

  const tile::Kernel& kernel_;
  const std::vector<printer::ValueRange>& ranges_;
  const printer::ElementLoop& loop_;
  std::function<int(int)> side_of_;
  Index vector_;
};

}  // namespace tilewright::cuda
