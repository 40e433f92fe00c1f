// Access: where the elements that one load, store or buffer access touches stand in memory, as seen from the
// loops around it.
#pragma once

#include "backends/cpu/text/kernel_text.h"

#include <string>
#include <vector>

namespace tilewright::cpu {

// One axis of a bounded access: the coordinates start, start + 1, … of which [0, extent) exist.
struct AccessBound {
  int loop_axis = -1;  // the loop axis that walks it; -1: only `start` itself
  Amount start, extent;
  bool may_be_negative = true;
  bool may_end_early = true;
};

struct Access {
  std::string base;  // pointer to the first element of the view or buffer
  Amount offset;     // from there to the element at loop coordinate (0, 0)
  std::string name;  // of the view or buffer
  DType dtype = DType::f32;
  Amount stride[2];                 // along each loop axis
  std::vector<AccessBound> bounds;  // only those that the ranges of the starts do not prove
  std::string pointer() const { return offset.is(0) ? base : base + " + " + offset.str(); }
};

// The access of a load or store; `axes` as Instr::axes: the loop axis of each tile axis. `starts` begins at
// operand 0 (load) or 1 (store).
Access view_access(const KernelText& k, const tile::Op& op, const std::vector<int>& axes,
                   const std::vector<Index>& shape, const std::vector<Index>& loop_shape);
Access buffer_access(const KernelText& k, tile::ValueId v, const std::vector<int>& axes);

// The place of an element given by one index per view dim: "i * 1024 + j".
Amount element_offset(const KernelText& k, const tile::ViewParam& view, const std::vector<Amount>& indices);

}  // namespace tilewright::cpu
