// Rows, columns and depth of a dot, told by which operands depend on a variable.
#include "passes/nest/dot_axes.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <optional>
#include <set>

namespace tilewright::passes {

namespace {

constexpr Index kWidestBlock = 128;  // of a result's axis that one scale is for

}  // namespace

std::vector<std::vector<bool>> dependence(const LoopNest& nest) {
  std::vector<std::vector<bool>> all;
  for (const Expr& s : nest.exprs) {
    std::vector<bool> on(nest.extents.size());
    const auto take = [&](int operand) {
      for (std::size_t v = 0; v < on.size(); ++v) on[v] = on[v] || all[at(operand)][v];
    };
    for (int o : s.operands) take(o);
    for (auto [o, stride] : s.dynamic) take(o);
    if (s.mask >= 0) take(s.mask);
    for (std::size_t v = 0; v < on.size(); ++v) {
      on[v] = on[v] || s.offset.depends_on(static_cast<int>(v));
      const bool gone = s.kind == Expr::Kind::dot ? (s.inner ? nest.inner[v] : nest.reduced[v])
                        : s.kind == Expr::Kind::epilogue_reduction
                            ? s.offset.depends_on(static_cast<int>(v))
                            : s.kind == Expr::Kind::reduce && nest.reduced[v];
      if (gone) on[v] = false;
    }
    all.push_back(std::move(on));
  }
  return all;
}

namespace {

// The first whose result no other one multiplies: it stands in the frame of the loop.
int first_inner_dot(const LoopNest& nest) {
  std::vector<int> factors;
  for (const Expr& s : nest.exprs)
    if (s.inner) factors.insert(factors.end(), s.operands.begin(), s.operands.end());
  const std::vector<bool> multiplied = nest.made_of(factors);
  for (std::size_t s = 0; s < nest.exprs.size(); ++s)
    if (nest.exprs[s].inner && !multiplied[s]) return static_cast<int>(s);
  return -1;
}

}  // namespace

DotAxes dot_axes(const LoopNest& nest) {
  int expr = nest.dot();
  if (expr < 0) expr = first_inner_dot(nest);
  const Expr& dot = nest.exprs[at(expr)];
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const std::vector<bool>&a = depends[at(dot.operands[0])], &b = depends[at(dot.operands[1])];
  // Scales of blocks cut an axis in two: the inner part is the tile's, however many outer ones there are.
  const auto length = [&](int v) {
    const Index extent = nest.extents[at(v)];
    return dot.scaled_accumulation ? std::min(extent, kWidestBlock) : extent;
  };
  // What tiles are reduced along is theirs, too.
  const auto rank = [&](int v) {
    const bool along = std::any_of(nest.exprs.begin(), nest.exprs.end(), [&](const Expr& s) {
      return s.kind == Expr::Kind::epilogue_reduction && s.offset.depends_on(v);
    });
    return std::pair(along, length(v));
  };
  const auto longest = [&](const std::vector<bool>& of, const std::vector<bool>& not_of) {
    int best = -1;
    for (int v : nest.parallel_variables())
      if (of[at(v)] && !not_of[at(v)] && (best < 0 || rank(v) >= rank(best))) best = v;
    return best;
  };
  return {expr, longest(a, b), longest(b, a), nest.reduced_variables().back()};
}

}  // namespace tilewright::passes
