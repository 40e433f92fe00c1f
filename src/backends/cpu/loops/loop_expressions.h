// LoopExpressions: operands, operations and stored vectors as C++ expressions.
#pragma once

#include "backends/cpu/loops/loop_lanes.h"

namespace tilewright::cpu {

class LoopExpressions : LoopParts {
 public:
  explicit LoopExpressions(LoopState& s, const LoopLanes& lanes) : LoopParts(s), lanes_(lanes) {}

  Term term(const printer::Ref& ref, int copy, Pass& pass);
  Term operation(int i, int copy, Pass& pass);
  std::string words_text(int i, int copy, Pass& pass);
  // The first lane's value of an integer that counts them.
  std::string first_text(const printer::Ref& ref, int copy, Pass& pass);
  std::string store_text(const Node& n, const std::string& value, int copy, Pass& pass);

 private:
  bool is_constant(const printer::Ref& ref, double value) const;
  std::optional<Term> one_plus_tanh(int i, int copy, Pass& pass);
  Term multiply_add(int i, int side, int copy, Pass& pass);
  void add_first(const printer::Ref& ref, Sum& sum, Pass& pass);
  std::string lane_mask_text(int i, int side, int copy, Pass& pass);

  const LoopLanes& lanes_;
};

}  // namespace tilewright::cpu
