// Integer arithmetic on positions, folded while a group is walked: sums, products, quotients and remainders
// become index expressions, comparisons that the variables' ranges decide become constants, and of two that
// one of them implies that one is left. An element read at such an index is a view's (document ids, biases,
// lengths), not a gather.
#pragma once

#include "passes/nest/loop_nest.h"

#include <optional>
#include <variant>

namespace tilewright::passes {

// What the op gives: an expr that is there already, or a new one; none where nothing folds.
std::optional<std::variant<int, Expr>> fold_index(const ir::Graph& graph, const LoopNest& nest,
                                                  const ir::Op& op, const std::vector<int>& operands);

// Every value of the index lies in [0, extent).
bool always_inside(const IndexExpr& index, Index extent, const Extents& extents);

}  // namespace tilewright::passes
