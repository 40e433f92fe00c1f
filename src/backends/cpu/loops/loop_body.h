// LoopBody: the instructions of one pass, on vectors.
#pragma once

#include "backends/cpu/loops/loop_reductions.h"

namespace tilewright::cpu {

class LoopBody : LoopParts {
 public:
  explicit LoopBody(LoopState& s, const LoopLanes& lanes, LoopExpressions& expressions,
                    LoopReductions& reductions)
      : LoopParts(s), lanes_(lanes), expressions_(expressions), reductions_(reductions) {}

  void print_body(Pass& pass, Which which);

 private:
  void print_vector(int i, Pass& pass);
  std::string compute_text(int i, int copy, Pass& pass);
  std::string load_text(int i, int copy, Pass& pass);
  void print_store(int i, Pass& pass);
  std::string offsets_text(int i, std::size_t first, int copy, Pass& pass);
  std::string gather_text(int i, int copy, Pass& pass);
  void print_indexed_effect(int i, Pass& pass);

  const LoopLanes& lanes_;
  LoopExpressions& expressions_;
  LoopReductions& reductions_;
};

}  // namespace tilewright::cpu
