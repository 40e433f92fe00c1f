// What the values of a kernel are called in printed code: by their own names where the tile IR has them, else
// by what computes them. A word of advice for a reader, never more: nothing else that is printed depends on
// it.
#pragma once

#include "backends/printer/loop_plan.h"

#include <tilewright/tile/kernel.h>

#include <string>
#include <vector>

namespace tilewright::printer {

class ValueNames {
 public:
  ValueNames(const tile::Kernel& kernel, const LoopPlan& plan);

  // "row_max", "exp_scores", "q_in": a C++ identifier, which others may have, too, and which may be a word of
  // the language.
  const std::string& operator[](tile::ValueId v) const { return names_[static_cast<std::size_t>(v)]; }
  // The name of the variable or the buffer that a value lives in (LoopPlan::storage).
  const std::string& of_storage(tile::ValueId v) const {
    return storages_[static_cast<std::size_t>(plan_.storage(v))];
  }

 private:
  const LoopPlan& plan_;
  std::vector<std::string> names_, storages_;
};

}  // namespace tilewright::printer
