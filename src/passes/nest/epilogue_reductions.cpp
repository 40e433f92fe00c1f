// Which epilogue reductions a program may have.
#include "passes/nest/epilogue_reductions.h"

#include "passes/nest/dot_axes.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

bool is_epilogue_reduction(const Expr& s) { return s.kind == Expr::Kind::epilogue_reduction; }

std::vector<int> epilogue_reductions_behind(const LoopNest& nest, int expr) {
  std::vector<int> out;
  const std::vector<bool> parts = made_above_epilogue_reductions(nest, expr);
  for (int s : epilogue_reductions_of(nest))
    if (parts[at(s)]) out.push_back(s);
  return out;
}

// Whether an epilogue reduction takes whole variables of an axis that views cut.
bool reduces_whole_variables(const LoopNest& nest, int epilogue_reduction) {
  const IndexExpr& by = reduced_by(nest, epilogue_reduction);
  Index size = 1;
  for (int v : nest.parallel_variables())
    if (by.depends_on(v)) size *= nest.extents[at(v)];
  return by.is_affine() && range(by, nest.extents).low == 0 && range(by, nest.extents).high + 1 == size;
}

// Whether only the last matmul's loop stands before the epilogue reductions.
bool have_one_loop(const LoopNest& nest) {
  if (nest.dot() < 0 || nest.has_inner_dots() || nest.levels() != 1) return false;
  const DotAxes axes = dot_axes(nest);
  if (axes.m < 0 || axes.n < 0) return false;
  const bool others = std::any_of(nest.exprs.begin(), nest.exprs.end(), [](const Expr& s) {
    return s.kind == Expr::Kind::reduce || takes_whole_row(s);
  });
  const std::vector<int> all = epilogue_reductions_of(nest);
  return !others && std::all_of(all.begin(), all.end(), [&](int s) {
    const IndexExpr& by = reduced_by(nest, s);
    return reduces_whole_variables(nest, s) && (by.depends_on(axes.m) || by.depends_on(axes.n));
  });
}

}  // namespace

std::vector<int> epilogue_reductions_of(const LoopNest& nest) {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(nest.exprs.size()); ++s)
    if (is_epilogue_reduction(nest.exprs[at(s)])) out.push_back(s);
  return out;
}

int epilogue_reduction_behind(const LoopNest& nest, int expr) {
  const std::vector<int> all = epilogue_reductions_behind(nest, expr);
  return all.empty() ? -1 : all.front();
}

std::vector<bool> held_variables(const LoopNest& nest) {
  std::vector<bool> held(nest.extents.size());
  if (epilogue_reductions_of(nest).empty()) return held;
  const std::vector<std::vector<bool>> depends = dependence(nest);
  // The epilogue reductions that `expr` is computed of: all of them (where it is reduced once more), or those
  // beside which a product stands, or whose value is stored at many places: along what they reduced.
  const auto hold = [&](int expr, const IndexExpr* stored_at) {
    const bool is_reduced = stored_at == nullptr;
    const std::vector<bool> parts = made_above_epilogue_reductions(nest, expr);
    bool beside_product = false;
    for (std::size_t s = 0; s < parts.size(); ++s)
      beside_product = beside_product || (parts[s] && nest.exprs[s].kind == Expr::Kind::dot);
    for (int s : epilogue_reductions_of(nest)) {
      if (!parts[at(s)]) continue;
      bool stands_along = is_reduced || beside_product;
      for (std::size_t v = 0; v < held.size() && !stands_along; ++v) {
        const int variable = static_cast<int>(v);
        const bool varies = depends[at(expr)][v] || stored_at->depends_on(variable);
        stands_along = varies && reduced_by(nest, s).depends_on(variable);
      }
      for (std::size_t v = 0; v < held.size(); ++v)
        held[v] = held[v] || (stands_along && reduced_by(nest, s).depends_on(static_cast<int>(v)));
    }
  };
  for (int s : epilogue_reductions_of(nest)) hold(nest.exprs[at(s)].operands[0], nullptr);
  for (const ProgramOutput& o : nest.outputs) hold(o.expr, &o.offset);
  return held;
}

bool can_reduce_in_epilogue(const LoopNest& nest) {
  if (epilogue_reductions_of(nest).empty()) return true;
  if (!have_one_loop(nest)) return false;
  const DotAxes axes = dot_axes(nest);
  const std::vector<bool> held = held_variables(nest);
  // A thread that holds several sums has registers for fewer rows of each.
  const Index most_rows = nest.is_b2b() ? kMostHeld / 2 : kMostHeld;
  for (int v = 0; v < static_cast<int>(held.size()); ++v)
    if (held[at(v)] &&
        ((v != axes.m && v != axes.n) || nest.extents[at(v)] > (v == axes.m ? most_rows : kMostHeld)))
      return false;
  const auto is_held = [&](int s) {
    for (int v = 0; v < static_cast<int>(held.size()); ++v)
      if (reduced_by(nest, s).depends_on(v) && !held[at(v)]) return false;
    return true;
  };
  for (const ProgramOutput& o : nest.outputs) {
    const std::vector<int> of = epilogue_reductions_behind(nest, o.expr);
    if (o.accumulate) return false;
    if (std::all_of(of.begin(), of.end(), is_held)) continue;
    const IndexExpr& by = reduced_by(nest, of.front());
    if (std::any_of(of.begin(), of.end(), [&](int s) { return !(reduced_by(nest, s) == by); })) return false;
  }
  return true;
}

std::vector<bool> made_above_epilogue_reductions(const LoopNest& nest, int expr) {
  std::vector<bool> found(nest.exprs.size());
  found[at(expr)] = true;
  for (std::size_t s = found.size(); s-- > 0;) {
    const Expr& m = nest.exprs[s];
    if (!found[s] || is_epilogue_reduction(m)) continue;
    for (int o : m.operands) found[at(o)] = true;
    for (auto [o, stride] : m.dynamic) found[at(o)] = true;
    if (m.mask >= 0) found[at(m.mask)] = true;
  }
  return found;
}

const IndexExpr& reduced_by(const LoopNest& nest, int epilogue_reduction) {
  return nest.exprs[at(epilogue_reduction)].offset;
}

}  // namespace tilewright::passes
