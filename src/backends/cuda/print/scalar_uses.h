// Which scalars of a kernel get a variable of their own in printed code.
#pragma once

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::cuda {

// ScalarUses: which scalars of index arithmetic get a variable. Every other scalar has one.
class ScalarUses {
 public:
  explicit ScalarUses(const tile::Kernel& kernel);
  bool is_unused(tile::ValueId v) const { return unused_[static_cast<std::size_t>(v)]; }
  // Whether a scalar is read once, by arithmetic of its own block that stays short with it.
  bool is_part_of_another(tile::ValueId v) const { return part_[static_cast<std::size_t>(v)]; }
  // Whether a scalar is computed in the kernel's own body, of program ids, parameters and numbers alone.
  bool is_of_program(tile::ValueId v) const { return of_program_[static_cast<std::size_t>(v)]; }

 private:
  std::vector<bool> unused_, part_, of_program_;
};

}  // namespace tilewright::cuda
