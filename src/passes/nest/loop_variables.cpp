// Splitting and merging of loop variables.
#include "passes/nest/loop_variables.h"

#include <functional>

namespace tilewright::passes {

namespace {

void for_each_expr(LoopNest& nest, const std::function<void(IndexExpr&)>& fn) {
  for (Expr& s : nest.exprs) fn(s.offset);
  for (ProgramOutput& o : nest.outputs) fn(o.offset);
}

struct SplitAt {
  int variable = -1;
  Index inner = 0;
};

// A division or remainder of one whole variable by a divisor of its extent.
SplitAt find_split(const IndexExpr& e, const LoopNest& nest, SplitReduced reduced) {
  const Extents& extents = nest.extents;
  for (const IndexExpr::Term& t : e.terms()) {
    if (!t.div_mod) continue;
    const SplitAt nested = find_split(t.div_mod->inner, nest, reduced);
    if (nested.variable >= 0) return nested;
    const int v = t.div_mod->inner.single_variable();
    if (v >= 0 && nest.reduced[static_cast<std::size_t>(v)] && reduced == SplitReduced::no) continue;
    if (v >= 0 && nest.inner[static_cast<std::size_t>(v)]) continue;
    if (v >= 0 && extents[static_cast<std::size_t>(v)] % t.div_mod->divisor == 0 &&
        t.div_mod->divisor < extents[static_cast<std::size_t>(v)])
      return {v, t.div_mod->divisor};
  }
  return {};
}

void apply_split(LoopNest& nest, const SplitAt& split) {
  // Variables after the split one move up by one, so that nesting order stays.
  Extents extents = nest.extents;
  const auto at = static_cast<std::size_t>(split.variable);
  extents[at] /= split.inner;
  extents.insert(extents.begin() + split.variable + 1, split.inner);
  nest.reduced.insert(nest.reduced.begin() + split.variable + 1, nest.reduced[at]);
  nest.inner.insert(nest.inner.begin() + split.variable + 1, nest.inner[at]);
  auto by = [&](int v) {
    if (v < split.variable) return IndexExpr::variable(v);
    if (v > split.variable) return IndexExpr::variable(v + 1);
    return IndexExpr::variable(v) * split.inner + IndexExpr::variable(v + 1);
  };
  for_each_expr(nest, [&](IndexExpr& e) { e = substitute(e, by, extents); });
  nest.extents = std::move(extents);
}

bool div_mod_depends_on(const IndexExpr& e, int v) {
  for (const IndexExpr::Term& t : e.terms())
    if (t.div_mod && t.div_mod->inner.depends_on(v)) return true;
  return false;
}

bool can_merge(LoopNest& nest, int outer) {
  const int inner = outer + 1;
  const auto a = static_cast<std::size_t>(outer), b = static_cast<std::size_t>(inner);
  if (nest.reduced[a] != nest.reduced[b] || nest.inner[a] || nest.inner[b]) return false;
  bool combines = true;
  for_each_expr(nest, [&](IndexExpr& e) {
    combines = combines && !div_mod_depends_on(e, outer) && !div_mod_depends_on(e, inner) &&
               e.factor(outer) == e.factor(inner) * nest.extents[static_cast<std::size_t>(inner)];
  });
  return combines;
}

void apply_merge(LoopNest& nest, int outer) {
  Extents extents = nest.extents;
  extents[static_cast<std::size_t>(outer)] *= extents[static_cast<std::size_t>(outer) + 1];
  extents.erase(extents.begin() + outer + 1);
  nest.reduced.erase(nest.reduced.begin() + outer + 1);
  nest.inner.erase(nest.inner.begin() + outer + 1);
  // The outer's multiples vanish: the merged variable carries the inner's factor.
  auto by = [&](int v) {
    if (v < outer) return IndexExpr::variable(v);
    if (v == outer) return IndexExpr(0);
    return IndexExpr::variable(v - 1);
  };
  for_each_expr(nest, [&](IndexExpr& e) { e = substitute(e, by, extents); });
  nest.extents = std::move(extents);
}

}  // namespace

void split_k_variables(LoopNest& nest, SplitReduced reduced) {
  // Rows and columns of a dot stay whole for what is only a number: a mask's arithmetic on positions.
  const bool dots = nest.has_dots();
  for (int rounds = 0; rounds < 16;
       ++rounds) {  // each round lowers the number of divisors; 16 bounds odd inputs
    SplitAt split;
    const auto look = [&](const IndexExpr& e) {
      if (split.variable < 0) split = find_split(e, nest, reduced);
    };
    for (const Expr& s : nest.exprs)
      if (!dots || (s.kind != Expr::Kind::index && s.kind != Expr::Kind::in_range)) look(s.offset);
    for (const ProgramOutput& o : nest.outputs) look(o.offset);
    if (split.variable < 0) return;
    apply_split(nest, split);
  }
}

void merge_variables(LoopNest& nest) {
  for (int outer = 0; outer + 1 < static_cast<int>(nest.extents.size());) {
    if (can_merge(nest, outer))
      apply_merge(nest, outer);
    else
      ++outer;
  }
}

}  // namespace tilewright::passes
