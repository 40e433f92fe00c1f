// LoopWalk: the order of loops: rows, and vectors along them.
#pragma once

#include "backends/cpu/loops/loop_body.h"
#include "backends/cpu/loops/loop_pointers.h"
#include "backends/cpu/loops/loop_uniform.h"

namespace tilewright::cpu {

class LoopWalk : LoopParts {
 public:
  explicit LoopWalk(LoopState& s, LoopBody& body, LoopReductions& reductions, LoopUniform& uniform,
                    LoopPointers& pointers)
      : LoopParts(s), body_(body), reductions_(reductions), uniform_(uniform), pointers_(pointers) {}

  void print_rows();
  void print_columns_outside();

 private:
  void print_rows(const std::string& first, const std::string& end);
  void print_along_vec(const std::function<void(Pass&)>& body);
  Amount whole_vectors();
  Index streams_apart(const Amount& whole) const;
  bool goes_backwards(const Amount& whole) const;
  std::pair<std::string, std::string> open_blocks(const Amount& begin, const Amount& end, Index span,
                                                  bool backwards);

  LoopBody& body_;
  LoopReductions& reductions_;
  LoopUniform& uniform_;
  LoopPointers& pointers_;
};

}  // namespace tilewright::cpu
