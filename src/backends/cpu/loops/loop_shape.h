// LoopShape: how the elements of one loop are walked: which axis by vectors, which one outside, how many
// vectors at once.
#pragma once

#include "backends/cpu/text/access.h"
#include "backends/printer/loop_plan.h"

#include <vector>

namespace tilewright::cpu {

struct LoopShape {
  int vec = 0;     // the loop axis that vectors walk
  int other = -1;  // the other axis that is longer than 1, or -1
  bool vec_outside =
      false;  // blocks of vectors outside, `other` inside: for reductions and scans along `other`
  Index vec_count = 1, other_count = 1;
  int copies = 1;     // vectors in flight
  Index columns = 0;  // rows of so many elements are walked as one (joined_rows.h); 0: row by row
};

// The instructions of a loop that are printed together, with what they depend on.
struct LoopPart {
  const printer::ElementLoop* loop = nullptr;
  std::vector<int> instrs;  // indices into loop->body, in order

  const printer::Instr& at(int instr) const { return loop->body[static_cast<std::size_t>(instr)]; }
};

// A loop may reduce along both axes: then it is printed twice, first what reduces along axis 0, then the rest
// with all that is written.
std::vector<LoopPart> split_by_reduced_axis(const printer::ElementLoop& loop);

// The loop axis a reduce or scan runs along; -1 when that axis has one element.
int reduced_axis(const printer::Instr& instr);

// Work of one vector, in operations.
double vector_operations(const LoopPart& part);

LoopShape choose_shape(const KernelText& k, const LoopPart& part);

// The access of a load, store, reload, keep or scan instruction.
Access instr_access(const KernelText& k, const printer::Instr& instr, const std::vector<Index>& loop_shape);
bool is_access(const printer::Instr& instr);

}  // namespace tilewright::cpu
