// Rows that begin anywhere: where a program has one row of narrow elements, its columns are counted from the
// last aligned place before that row, so that each vector is one aligned access.
#pragma once

#include "backends/printer/loop_plan.h"
#include "backends/printer/value_range.h"

#include <optional>
#include <set>
#include <vector>

namespace tilewright::cuda {

struct ShiftedRow {
  Index vector = 1;         // elements
  int narrowest_bytes = 2;  // of an element
  // The accesses whose rows all begin the same number of elements, the shift, behind a multiple of `vector`;
  // `first` is one of the loop that is printed first. Others' vectors begin anywhere.
  std::set<const tile::Op*> aligned = {};
  const tile::Op* first = nullptr;
};

struct ShiftedRowInput {
  const tile::Kernel& kernel;
  const printer::LoopPlan& plan;
  const std::vector<printer::ValueRange>& ranges;
  int limit_bytes;  // of a vector
};
// For kernels of element loops over one row of `shape`, where all that they store, or else what they load
// first, has no two elements aligned, and all of it begins alike.
std::optional<ShiftedRow> find_shifted_row(const ShiftedRowInput& input, const std::vector<Index>& shape);

}  // namespace tilewright::cuda
