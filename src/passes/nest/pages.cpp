// Pages are found by the form of index expressions: the remainder of a position is its place in a page, and
// the quotient picks the page from the table.
#include "passes/nest/pages.h"

#include "passes/nest/dot_axes.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

// Smaller pages are gathered before the loop.
constexpr Index kSmallestBlock = 8;

const Expr& sym_of(const LoopNest& nest, int s) { return nest.exprs[static_cast<std::size_t>(s)]; }

// Multiples of other variables, and one of the place in a page.
std::optional<Pages> places_of(const LoopNest& nest, const IndexExpr& offset) {
  Pages pages;
  for (const IndexExpr::Term& t : offset.terms()) {
    if (!t.div_mod) continue;
    const int v = t.div_mod->inner.single_variable();
    if (t.div_mod->is_division || v < 0 || pages.variable >= 0 || t.factor <= 0) return std::nullopt;
    if (!nest.reduced[static_cast<std::size_t>(v)]) return std::nullopt;
    pages = {v, t.div_mod->divisor, t.factor};
  }
  if (pages.variable < 0 || offset.factor(pages.variable) != 0) return std::nullopt;
  return pages;
}

// The same for all places of a page.
bool counts_pages(const IndexExpr& e, const Pages& pages) {
  return std::all_of(e.terms().begin(), e.terms().end(), [&](const IndexExpr::Term& t) {
    if (!t.div_mod) return t.variable != pages.variable;
    if (!t.div_mod->inner.depends_on(pages.variable)) return true;
    return t.div_mod->is_division && t.div_mod->inner.single_variable() == pages.variable &&
           t.div_mod->divisor % pages.size == 0;
  });
}

}  // namespace

bool checks_its_index(const LoopNest& nest, const Expr& load) {
  if (load.dynamic.size() != 1 || load.mask < 0) return false;
  const Expr& mask = sym_of(nest, load.mask);
  return mask.kind == Expr::Kind::in_range && mask.operands == std::vector<int>{load.dynamic[0].first} &&
         (mask.offset == IndexExpr(0) || moved_along(nest, load) >= 0);
}

int moved_along(const LoopNest& nest, const Expr& load) {
  if (load.dynamic.size() != 1 || load.mask < 0) return -1;
  const int v = sym_of(nest, load.mask).offset.single_variable();
  return v >= 0 && load.offset.factor(v) == load.dynamic[0].second ? v : -1;
}

bool picks_a_block(const LoopNest& nest, const Expr& load) {
  if (!checks_its_index(nest, load)) return false;
  const int index = load.dynamic[0].first, along = moved_along(nest, load);
  const std::vector<bool> walked = dependence(nest)[static_cast<std::size_t>(index)];
  const DotAxes axes = dot_axes(nest);
  if (along >= 0 && along != axes.m && along != axes.n) return false;
  for (std::size_t v = 0; v < walked.size(); ++v) {
    const int variable = static_cast<int>(v);
    const bool in_tile = variable == axes.m || variable == axes.n || nest.reduced[v] || nest.inner[v];
    if (walked[v] && in_tile) return false;
  }
  return true;
}

std::optional<Pages> pages_of(const LoopNest& nest, const Expr& load) {
  if (load.kind != Expr::Kind::load || !nest.has_inner_dots() || !checks_its_index(nest, load) ||
      moved_along(nest, load) >= 0)
    return std::nullopt;
  const std::optional<Pages> pages = places_of(nest, load.offset);
  if (!pages || pages->size % kSmallestBlock != 0 ||
      nest.extents[static_cast<std::size_t>(pages->variable)] % pages->size != 0)
    return std::nullopt;
  const int index = load.dynamic[0].first;
  const std::vector<bool> walked = dependence(nest)[static_cast<std::size_t>(index)];
  const DotAxes axes = dot_axes(nest);
  for (std::size_t v = 0; v < walked.size(); ++v) {
    const int variable = static_cast<int>(v);
    if (variable == pages->variable || !walked[v]) continue;
    if (variable == axes.m || variable == axes.n || nest.reduced[v] || nest.inner[v]) return std::nullopt;
  }
  const std::vector<bool> parts = nest.made_of({index});
  for (std::size_t s = 0; s < parts.size(); ++s)
    if (parts[s] && (nest.exprs[s].level > 0 || !counts_pages(nest.exprs[s].offset, *pages)))
      return std::nullopt;
  return pages;
}

Index block_within_pages(const LoopNest& nest, Index most) {
  for (const Expr& s : nest.exprs)
    if (const std::optional<Pages> pages = pages_of(nest, s))
      while (pages->size % most != 0) most /= 2;
  return most;
}

}  // namespace tilewright::passes
