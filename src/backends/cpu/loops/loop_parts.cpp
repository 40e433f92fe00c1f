// The state of a part of an element loop as it begins.
#include "backends/cpu/loops/loop_parts.h"

#include <utility>

namespace tilewright::cpu {

LoopState::LoopState(KernelText& kernel, LoopPart loop_part, RowWalk row_walk)
    : k(kernel),
      part(std::move(loop_part)),
      shape(choose_shape(kernel, part)),
      nodes(part.loop->body.size()),
      vec_count{shape.vec_count, ""},
      other_count{shape.other_count, ""},
      walk(std::move(row_walk)) {
  if (part.loop->shape.size() == 1) {
    vec = "i";
  } else {
    vec = shape.vec == 1 ? "c" : "r";
    row = shape.vec == 1 ? "r" : "c";
  }
}

LoopParts::LoopParts(LoopState& s)
    : k_(s.k),
      part_(s.part),
      shape_(s.shape),
      nodes_(s.nodes),
      vec_count_(s.vec_count),
      other_count_(s.other_count),
      walk_(s.walk),
      is_ragged_(s.is_ragged),
      has_vectors_(s.has_vectors),
      vec_(s.vec),
      row_(s.row) {}

}  // namespace tilewright::cpu
