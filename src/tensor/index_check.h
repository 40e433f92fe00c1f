// Checks of indices that are data: the first one that is out of range raises an Error with its value, its
// place and the user's line. By the host before an eager operation; by the program itself, as two more
// outputs of it, in compiled functions that ask for it (ContextOptions::check).
#pragma once

#include "tensor/trace.h"

namespace tilewright::detail {

// The operation that reads an index, whose numbers must be in [0, extent).
struct IndexUse {
  const char* op;    // "take"
  const char* what;  // "index", "label"
  Index extent = 0;
  double row_bytes = 0;    // that the operation moves for each index: what the check is small against
  bool ascending = false;  // none may be less than the one before it, either
  int axis = -1;           // that a single index is of, where each axis has one
};

// Before `operands` are given to the operation: checks at once, or records the check where they are recorded.
void check_index(const IndexUse& use, const Tensor& index, std::initializer_list<const Tensor*> operands,
                 const Location& where);
void check_index(const IndexUse& use, const Tensor& index, const std::vector<Tensor>& operands,
                 const Location& where);

// Takes the last 2 · checks.size() of `results`, which the checks gave, and throws Error where one found an
// index out of range; values that are only recorded are handed on to the function that encloses them.
void settle(const std::vector<PendingCheck>& checks, std::vector<Tensor>& results);

}  // namespace tilewright::detail
