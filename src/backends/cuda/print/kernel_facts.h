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
  std::vector<bool> only_stored;             // by value: every use rounds it to its narrow type

  bool is_written(int view) const {
    const tile::ViewUse& use = view_uses[static_cast<std::size_t>(view)];
    return use.written || use.accumulated;
  }
};

}  // namespace tilewright::cuda
