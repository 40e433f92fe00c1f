// LoopAnalysis: what depends on what in a part of an element loop, and what is written inside what.
#pragma once

#include "backends/cpu/loops/loop_lanes.h"

namespace tilewright::cpu {

class LoopAnalysis : LoopParts {
 public:
  explicit LoopAnalysis(LoopState& s, LoopLanes& lanes) : LoopParts(s), lanes_(lanes) {}

  void analyse();

 private:
  void analyse_access(int i);
  void join_rows();
  void trim_axis(int axis, Amount* count);
  std::optional<AccessBound> end_of_rows(int axis) const;
  std::optional<AccessBound> end_of_all(int axis) const;
  std::optional<AccessBound> end_of_store(int i, int axis) const;
  std::optional<AccessBound> end_of_reduction(int i, int axis) const;
  std::optional<AccessBound> end_where_true(int i, int axis) const;
  int condition_of_reduction(int i, int axis) const;
  std::string limit_variable(const Amount& from, const Amount& to, Index most);
  Window window_of(const Access& access);
  void choose_in_place();
  bool fits_in_place(int i) const;
  bool is_product_of_mad(int i) const;

  LoopLanes& lanes_;
  std::map<std::string, std::string> limits_;  // "extent - start" → variable
};

}  // namespace tilewright::cpu
