// ProgramDigits: where a block begins, as a sum over the digits of the program's number. A grid axis that
// counts several axes of a result (5 heads of 40 sequences) is taken apart by div and rem: each quotient or
// remainder is a digit.
#pragma once

#include <tilewright/tile/affine.h>
#include <tilewright/tile/kernel.h>

#include <map>
#include <optional>
#include <vector>

namespace tilewright::cuda {

// (program_id(axis) / below) mod count.
struct Digit {
  int axis = 0;
  Index below = 1, count = 1;
  friend bool operator==(const Digit&, const Digit&) = default;
  friend auto operator<=>(const Digit&, const Digit&) = default;
};

// constant + Σ factor · digit + depth · (the induction value of the only loop).
struct Start {
  Index constant = 0;
  std::map<Digit, Index> digits;  // no factor is 0
  Index depth = 0;
};

class ProgramDigits {
 public:
  // The kernel must outlive this and has no scalar parameters.
  explicit ProgramDigits(const tile::Kernel& kernel);

  // Empty where a scalar is no such sum.
  std::optional<Start> start(tile::ValueId scalar) const;
  // Whether the digits number the programs: each program has values of its own, and every combination of
  // values is a program.
  bool number_programs(const std::map<Digit, Index>& digits) const;
  std::optional<Index> constant(tile::ValueId scalar) const;

 private:
  std::optional<Digit> digit(tile::ValueId scalar) const;
  std::optional<Digit> whole_axis(int axis) const;

  const tile::Kernel& kernel_;
  tile::AffineTable affine_;
  std::map<tile::ValueId, const tile::Op*> made_by_;
};

}  // namespace tilewright::cuda
