// CompileOptions::memory_budget: what of it a call's arguments and results leave for its temporaries.
#pragma once

#include "tensor/state.h"

#include <functional>

namespace tilewright::detail {

// Thrown where no plan fits; first without a place, which the caller knows.
class OverBudget : public Error {
 public:
  OverBudget(const std::string& text, Index bytes) : Error(text), needed(bytes) {}
  OverBudget(const OverBudget& from, const Location& where)
      : Error(from.what(), where), needed(from.needed) {}
  Index needed;  // that would do
};

// The graph as `lower` makes it with this many bytes for temporaries, its outputs placed in inputs where
// `options` ask for that. Throws OverBudget, which says how many bytes would do.
passes::Compiled lowered_within(
    const ir::Graph& graph, const GraphOptions& options,
    const std::function<passes::Compiled(std::optional<Index> arena_bytes)>& lower);

}  // namespace tilewright::detail
