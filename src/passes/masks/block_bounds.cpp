// Which masks are worth it, and where their bounds lie in memory.
#include "passes/masks/block_bounds.h"

#include "ops/rows.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/online.h"

#include <algorithm>

namespace tilewright::passes {

using Kind = Condition::Kind;

namespace {

// Fewest blocks of a row for which bounds pay: else the second kernel's start costs more than they save.
constexpr Index kFewestBlocks = 4;
// Keys are counted in 32 bits, and some more at once than there are.
constexpr Index kMostKeys = Index{1} << 30;

void add_variables(const LoopNest& nest, const Condition& c, const std::vector<std::vector<bool>>& depends,
                   std::vector<bool>& on) {
  for (std::size_t v = 0; v < on.size(); ++v) {
    on[v] = on[v] || c.expression.depends_on(static_cast<int>(v));
    for (const Condition::Value& value : c.values) on[v] = on[v] || depends[at(value.expr)][v];
  }
  for (const Condition& part : c.parts) add_variables(nest, part, depends, on);
}

bool is_number(const LoopNest& nest, int expr) { return nest.exprs[at(expr)].kind == Expr::Kind::constant; }

// A mask that something unknown is part of is never known to keep all.
bool is_known(const Condition& c) {
  return c.kind != Kind::unknown &&
         (c.kind != Kind::either || std::all_of(c.parts.begin(), c.parts.end(), is_known));
}

void find_masks(const ir::Graph& graph, const LoopNest& nest, BlockBounds& bounds) {
  bounds.broken = {.kind = Kind::never};
  for (const Expr& s : nest.exprs) {
    const bool chooses =
        s.kind == Expr::Kind::where || (s.kind == Expr::Kind::op && graph.node(s.node).op == &ops::kWhere);
    if (!chooses || is_number(nest, s.operands[1]) == is_number(nest, s.operands[2])) continue;
    const bool keeps = is_number(nest, s.operands[2]);
    const Condition c = condition_of(graph, nest, s.operands[0]), broken = keeps ? negated(c) : c;
    if (!c.of_vectors() || !is_known(broken)) continue;
    bounds.masks.push_back({s.operands[0], keeps});
    bounds.broken = either(bounds.broken, broken);
  }
}

}  // namespace

Index blocks_along(const LoopSpace& space, int v) {
  return ceil_div(space.nest.extents[at(v)], space.block(v));
}

std::optional<BlockBounds> find_block_bounds(const ir::Graph& graph, const LoopNest& nest,
                                             const TileShape& shape) {
  const bool b2b = nest.dot() >= 0 && nest.has_inner_dots();
  const LoopSpace space(nest, shape);
  if (!b2b || space.walked < 0) return std::nullopt;
  const Index keys = nest.extents[at(space.walked)];
  if (blocks_along(space, space.walked) < kFewestBlocks || keys > kMostKeys) return std::nullopt;
  BlockBounds out{.needed = {.kind = Kind::never}};
  for (const ReductionPass& pass : reduction_passes(graph, nest))
    out.needed = either(out.needed, needed(graph, nest, pass.exprs));
  if (!out.needed.of_vectors()) return std::nullopt;
  if (shape.leaves_masks) find_masks(graph, nest, out);
  std::vector<bool> on(nest.extents.size());
  for (const Condition& c : {out.needed, out.broken}) add_variables(nest, c, dependence(nest), on);
  for (int v : nest.parallel_variables())
    if (on[at(v)]) out.variables.push_back(v);
  return out;
}

Index bounds_count(const LoopNest& nest, const BlockBounds& bounds, const TileShape& shape) {
  const LoopSpace space(nest, shape);
  Index count = bounds.kinds();
  for (int v : bounds.variables) count *= blocks_along(space, v);
  return count;
}

}  // namespace tilewright::passes
