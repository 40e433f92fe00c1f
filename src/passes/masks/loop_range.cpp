// Solves comparisons for the walked variable, with the extremes of what else they are made of.
#include "passes/masks/loop_range.h"

#include <algorithm>

namespace tilewright::passes {

int walked_variable(const LoopNest& nest, const TileShape& shape) {
  if (shape.depth_variable >= 0) return shape.depth_variable;
  for (int v : {shape.column, shape.row})
    if (v >= 0 && nest.reduced[static_cast<std::size_t>(v)]) return v;
  return -1;
}

Index LoopSpace::block(int variable) const {
  if (variable == shape.depth_variable) return shape.depth;
  return variable == shape.row ? shape.rows : variable == shape.column ? shape.columns : 1;
}

namespace {

class Solver {
 public:
  explicit Solver(const LoopSpace& space) : space_(space), extent_(extent(space.walked)) {}

  LoopRange solve(const Condition& c) const {
    switch (c.kind) {
      case Condition::Kind::never:
        return none();
      case Condition::Kind::always:
      case Condition::Kind::unknown:
        return whole();
      case Condition::Kind::not_positive:
        if (c.of_vectors()) return whole();
        return not_positive(
            c.expression, c.values.empty() ? Bound(0) : Bound::value(c.values[0].expr) * c.values[0].factor);
      case Condition::Kind::both:
      case Condition::Kind::either:
        break;
    }
    LoopRange out = solve(c.parts[0]);
    for (std::size_t i = 1; i < c.parts.size(); ++i) {
      const LoopRange part = solve(c.parts[i]);
      out = c.kind == Condition::Kind::both
                ? LoopRange{max(out.lower, part.lower), min(out.upper, part.upper)}
                : either(out, part);
    }
    return out;
  }

  // The least value of an expression without the walked variable.
  Bound least(const IndexExpr& expression) const {
    Bound sum = expression.constant();
    for (const IndexExpr::Term& t : expression.terms()) sum = sum + extreme(t, false);
    return sum;
  }

 private:
  Index extent(int v) const { return space_.nest.extents[static_cast<std::size_t>(v)]; }
  LoopRange whole() const { return {0, extent_}; }
  LoopRange none() const { return {extent_, 0}; }

  // What holds both of two ranges; none counts for nothing here.
  static LoopRange either(const LoopRange& a, const LoopRange& b) {
    return {min(a.lower, b.lower), max(a.upper, b.upper)};
  }

  // expression + more <= 0.
  LoopRange not_positive(const IndexExpr& expression, const Bound& more) const {
    const IndexExpr::Term* solved = nullptr;
    Bound rest = more + expression.constant();
    for (const IndexExpr::Term& t : expression.terms()) {
      const bool walks = t.div_mod ? t.div_mod->is_division && t.div_mod->inner.depends_on(space_.walked)
                                   : t.variable == space_.walked;
      if (walks && !solved)
        solved = &t;
      else
        rest = rest + extreme(t, false);
    }
    if (!solved) {  // all elements or none
      const Bound test = rest * -1;
      return {choose(test, 0, extent_), choose(test, extent_, 0)};
    }
    const Index factor = solved->factor;
    if (!solved->div_mod) {
      if (factor > 0) return {0, floor_div(rest * -1, factor) + 1};
      return {ceil_of(rest, -factor), extent_};
    }
    // factor * (inner / divisor) <= -rest
    const Index divisor = solved->div_mod->divisor;
    if (factor > 0)
      return not_positive(solved->div_mod->inner, floor_div(rest * -1, factor) * -divisor + (1 - divisor));
    return not_positive(solved->div_mod->inner * -1, ceil_of(rest, -factor) * divisor);
  }

  static Bound ceil_of(const Bound& a, Index divisor) { return floor_div(a + (divisor - 1), divisor); }

  Bound extreme(const IndexExpr::Term& t, bool largest) const {
    const bool up = largest == (t.factor > 0);
    const Bound atom = t.div_mod ? of_division(*t.div_mod, up) : of_variable(t.variable, up);
    return atom * t.factor;
  }
  Bound of_variable(int v, bool up) const {
    const auto i = static_cast<std::size_t>(v);
    const Index last = extent(v) - 1, block = space_.block(v);
    if (space_.nest.reduced[i] || space_.nest.inner[i]) return up ? last : 0;
    Bound start = Bound::start(v, last / block * block);
    if (!up || block == 1) return start;
    return extent(v) % block == 0 ? start + (block - 1) : min(start + (block - 1), last);
  }
  Bound of_division(const IndexExpr::DivMod& d, bool up) const {
    if (!d.is_division) return up ? d.divisor - 1 : 0;
    Bound inner = d.inner.constant();
    for (const IndexExpr::Term& t : d.inner.terms()) inner = inner + extreme(t, up);
    return floor_div(inner, d.divisor);
  }

  const LoopSpace& space_;
  const Index extent_;
};

}  // namespace

LoopRange possible(const Condition& condition, const LoopSpace& space) {
  return Solver(space).solve(condition);
}

Bound least(const IndexExpr& expression, const LoopSpace& space) { return Solver(space).least(expression); }

LoopRange blocks_around(const LoopRange& range, const LoopSpace& space) {
  const Index extent = space.nest.extents[static_cast<std::size_t>(space.walked)],
              block = space.block(space.walked);
  return {floor_div(max(range.lower, 0), block) * block, min(range.upper, extent)};
}

LoopRange needed_blocks(const ir::Graph& graph, const LoopSpace& space, const std::vector<int>& reductions) {
  const Index extent = space.nest.extents[static_cast<std::size_t>(space.walked)];
  if (space.nest.is_empty()) return {0, extent};
  Condition need = needed(graph, space.nest, reductions);
  // A single block is walked whole or, for rows that need nothing, not at all.
  if (space.block(space.walked) >= extent) need = without_reduced(need, space.nest);
  return blocks_around(possible(need, space), space);
}

std::optional<double> walked_share(const LoopRange& blocks, const LoopSpace& space) {
  constexpr Index kSamples = 64;
  const LoopNest& nest = space.nest;
  if (nest.is_empty()) return 1;
  const Index block = space.block(space.walked),
              all = ceil_div(nest.extents[static_cast<std::size_t>(space.walked)], block);
  std::vector<Index> starts(nest.extents.size());
  double sum = 0;
  for (Index i = 0; i < kSamples; ++i) {
    for (std::size_t v = 0; v < starts.size(); ++v) {
      const int variable = static_cast<int>(v);
      if (nest.inner[v] || nest.reduced[v]) continue;
      // Even steps along each variable, in another order for each.
      const Index count = ceil_div(nest.extents[v], space.block(variable)), at = (2 * v + 1) * i % kSamples;
      starts[v] = (2 * at + 1) * count / (2 * kSamples) * space.block(variable);
    }
    const auto lower = blocks.lower.evaluate(starts), upper = blocks.upper.evaluate(starts);
    if (!lower || !upper) return std::nullopt;
    sum += static_cast<double>(*upper <= *lower ? 0 : ceil_div(*upper - *lower, block));
  }
  return sum / static_cast<double>(kSamples * all);
}

}  // namespace tilewright::passes
