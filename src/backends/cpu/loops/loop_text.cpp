// One part of an element loop, from what depends on what to its last loop.
#include "backends/cpu/loops/loop_text.h"

namespace tilewright::cpu {

LoopText::LoopText(KernelText& k, LoopPart part, RowWalk walk)
    : state_(k, std::move(part), std::move(walk)),
      lanes_(state_),
      analysis_(state_, lanes_),
      expressions_(state_, lanes_),
      reductions_(state_, expressions_),
      uniform_(state_, expressions_, reductions_),
      pointers_(state_),
      body_(state_, lanes_, expressions_, reductions_),
      order_(state_, body_, reductions_, uniform_, pointers_) {}

void LoopText::print() {
  analysis_.analyse();
  state_.k.include("tw_cpu/memory.h");
  pointers_.declare_pointers();
  pointers_.declare_prefetches();
  uniform_.print_uniform(/*along_other=*/false);
  if (state_.shape.vec_outside)
    order_.print_columns_outside();
  else
    order_.print_rows();
}

}  // namespace tilewright::cpu
