// Splitting and merging of loop variables.
#include "passes/nest/loop_variables.h"

#include <functional>

namespace tilewright::passes {

namespace {

void for_each_expr(GroupProgram& program, const std::function<void(IndexExpr&)>& fn) {
  for (Sym& s : program.syms) fn(s.offset);
  for (ProgramOutput& o : program.outputs) fn(o.offset);
}

struct SplitAt {
  int variable = -1;
  Index inner = 0;
};

// A division or remainder of one whole variable by a divisor of its extent.
SplitAt find_split(const IndexExpr& e, const GroupProgram& program, SplitReduced reduced) {
  const Extents& extents = program.extents;
  for (const IndexExpr::Term& t : e.terms()) {
    if (!t.div_mod) continue;
    const SplitAt nested = find_split(t.div_mod->inner, program, reduced);
    if (nested.variable >= 0) return nested;
    const int v = t.div_mod->inner.single_variable();
    if (v >= 0 && program.reduced[static_cast<std::size_t>(v)] && reduced == SplitReduced::no) continue;
    if (v >= 0 && program.inner[static_cast<std::size_t>(v)]) continue;
    if (v >= 0 && extents[static_cast<std::size_t>(v)] % t.div_mod->divisor == 0 &&
        t.div_mod->divisor < extents[static_cast<std::size_t>(v)])
      return {v, t.div_mod->divisor};
  }
  return {};
}

void apply_split(GroupProgram& program, const SplitAt& split) {
  // Variables after the split one move up by one, so that nesting order stays.
  Extents extents = program.extents;
  const auto at = static_cast<std::size_t>(split.variable);
  extents[at] /= split.inner;
  extents.insert(extents.begin() + split.variable + 1, split.inner);
  program.reduced.insert(program.reduced.begin() + split.variable + 1, program.reduced[at]);
  program.inner.insert(program.inner.begin() + split.variable + 1, program.inner[at]);
  auto by = [&](int v) {
    if (v < split.variable) return IndexExpr::variable(v);
    if (v > split.variable) return IndexExpr::variable(v + 1);
    return IndexExpr::variable(v) * split.inner + IndexExpr::variable(v + 1);
  };
  for_each_expr(program, [&](IndexExpr& e) { e = substitute(e, by, extents); });
  program.extents = std::move(extents);
}

bool div_mod_depends_on(const IndexExpr& e, int v) {
  for (const IndexExpr::Term& t : e.terms())
    if (t.div_mod && t.div_mod->inner.depends_on(v)) return true;
  return false;
}

bool can_merge(GroupProgram& program, int outer) {
  const int inner = outer + 1;
  const auto a = static_cast<std::size_t>(outer), b = static_cast<std::size_t>(inner);
  if (program.reduced[a] != program.reduced[b] || program.inner[a] || program.inner[b]) return false;
  bool merges = true;
  for_each_expr(program, [&](IndexExpr& e) {
    merges = merges && !div_mod_depends_on(e, outer) && !div_mod_depends_on(e, inner) &&
             e.factor(outer) == e.factor(inner) * program.extents[static_cast<std::size_t>(inner)];
  });
  return merges;
}

void apply_merge(GroupProgram& program, int outer) {
  Extents extents = program.extents;
  extents[static_cast<std::size_t>(outer)] *= extents[static_cast<std::size_t>(outer) + 1];
  extents.erase(extents.begin() + outer + 1);
  program.reduced.erase(program.reduced.begin() + outer + 1);
  program.inner.erase(program.inner.begin() + outer + 1);
  // The outer's multiples vanish: the merged variable carries the inner's factor.
  auto by = [&](int v) {
    if (v < outer) return IndexExpr::variable(v);
    if (v == outer) return IndexExpr(0);
    return IndexExpr::variable(v - 1);
  };
  for_each_expr(program, [&](IndexExpr& e) { e = substitute(e, by, extents); });
  program.extents = std::move(extents);
}

}  // namespace

void split_variables(GroupProgram& program, SplitReduced reduced) {
  // Rows and columns of a dot stay whole for what is only a number: a mask's arithmetic on positions.
  const bool dots = program.has_dots();
  for (int rounds = 0; rounds < 16;
       ++rounds) {  // each round lowers the number of divisors; 16 bounds odd inputs
    SplitAt split;
    const auto look = [&](const IndexExpr& e) {
      if (split.variable < 0) split = find_split(e, program, reduced);
    };
    for (const Sym& s : program.syms)
      if (!dots || (s.kind != Sym::Kind::index && s.kind != Sym::Kind::in_range)) look(s.offset);
    for (const ProgramOutput& o : program.outputs) look(o.offset);
    if (split.variable < 0) return;
    apply_split(program, split);
  }
}

void merge_variables(GroupProgram& program) {
  for (int outer = 0; outer + 1 < static_cast<int>(program.extents.size());) {
    if (can_merge(program, outer))
      apply_merge(program, outer);
    else
      ++outer;
  }
}

}  // namespace tilewright::passes
