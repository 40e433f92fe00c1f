// LoopPointers: pointers to rows and what is fetched ahead, before the loops that use them.
#pragma once

#include "backends/cpu/loops/loop_parts.h"

namespace tilewright::cpu {

class LoopPointers : LoopParts {
 public:
  explicit LoopPointers(LoopState& s) : LoopParts(s) {}

  void declare_pointers();
  void declare_rows(Which which);
  void declare_prefetches();
  void print_prefetches(const Pass& pass);

 private:
  void declare_row(int i, std::set<std::string>& declared);
  void declare_repeated(Node& n);

  std::map<std::string, std::string> pointers_;  // expression → variable, also of rows
  // Pointers to the first quarter of each row that is fetched ahead; empty: not fetched.
  std::vector<std::string> ahead_pointers_;
};

}  // namespace tilewright::cpu
