// What the printer looks up about a kernel's values and views.
#pragma once

#include "backends/printer/accuracy.h"

#include <tilewright/tile/kernel.h>

#include <map>
#include <vector>

namespace tilewright::cuda {

struct KernelFacts {
  explicit KernelFacts(const tile::Kernel& kernel);

  std::vector<printer::Accuracy> accuracy;   // by value: how exact it must be
  std::vector<tile::ViewUse> view_uses;      // by view
  std::vector<const tile::Op*> definitions;  // by value
  std::vector<bool> differs;                 // by value: between programs
  std::vector<bool> only_stored;             // by value: every use rounds it to its narrow type
  std::map<int, int> loads_of_view;          // loads and gathers

  // Whether a load's elements are read by one program each: its block differs between programs, and the
  // blocks of all programs are together less than twice the view. Unknown sizes count as large enough.
  bool loads_own_elements(const tile::Kernel& kernel, const tile::Op& load) const;

  bool is_written(int view) const {
    const tile::ViewUse& use = view_uses[static_cast<std::size_t>(view)];
    return use.written || use.accumulated;
  }
};

}  // namespace tilewright::cuda
