// Blocks that are partly zeros are found by the form of a choice: a bool, the block, a zero.
#include "passes/tiling/kept_block.h"

#include "passes/tiling/b2b_tiles.h"

#include <algorithm>
#include <set>

namespace tilewright::passes {

namespace {

const Expr& sym_of(const LoopNest& nest, int s) { return nest.exprs[static_cast<std::size_t>(s)]; }

// "where" is the only row op of three operands.
bool chooses(const Expr& s) {
  return (s.kind == Expr::Kind::where || s.kind == Expr::Kind::op) && s.operands.size() == 3;
}

bool is_zero(const Expr& s) { return s.kind == Expr::Kind::constant && s.number.f == 0 && s.number.i == 0; }

// Variables that the tiles of a back-to-back matmul's dots walk.
std::set<int> tile_variables(const LoopNest& nest, const DotAxes& axes) {
  std::set<int> out = {axes.m, axes.n, axes.k};
  for (std::size_t v = 0; v < nest.inner.size(); ++v)
    if (nest.inner[v]) out.insert(static_cast<int>(v));
  return out;
}

// Bools that change along one axis of a tile at most, and are computed of positions, of loads that are the
// same for all of it, and of vectors of integers and bools.
bool are_said_along_one_axis(const LoopNest& nest, const DotAxes& axes, const std::vector<int>& used) {
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const std::set<int> tile = tile_variables(nest, axes);
  const auto along = [&](int s) {
    return std::count_if(tile.begin(), tile.end(), [&](int v) {
      return v >= 0 && depends[static_cast<std::size_t>(s)][static_cast<std::size_t>(v)];
    });
  };
  const auto changes = [&](int v) {
    return v >= 0 && std::any_of(used.begin(), used.end(), [&](int s) {
             return depends[static_cast<std::size_t>(s)][static_cast<std::size_t>(v)];
           });
  };
  if (std::count_if(tile.begin(), tile.end(), changes) > 1) return false;
  const std::vector<bool> parts = nest.made_of(used);
  for (int s = 0; s < static_cast<int>(parts.size()); ++s) {
    if (!parts[static_cast<std::size_t>(s)]) continue;
    const Expr& m = sym_of(nest, s);
    const Expr::Kind kind = m.kind;
    const bool plain = m.offset.is_affine() && m.dynamic.empty() && m.mask < 0 && !is_float(m.dtype);
    if (kind == Expr::Kind::load
            ? along(s) > 0 && !plain
            : kind != Expr::Kind::index && kind != Expr::Kind::constant && kind != Expr::Kind::op &&
                  kind != Expr::Kind::cast && kind != Expr::Kind::in_range && kind != Expr::Kind::where)
      return false;
  }
  return true;
}

}  // namespace

KeptBlock kept_block(const LoopNest& nest, const DotAxes& axes, int operand) {
  KeptBlock out{operand, {}};
  while (chooses(sym_of(nest, out.load)) && is_zero(sym_of(nest, sym_of(nest, out.load).operands[2]))) {
    out.used.push_back(sym_of(nest, out.load).operands[0]);
    out.load = sym_of(nest, out.load).operands[1];
  }
  const Expr& block = sym_of(nest, out.load);
  if (block.kind != Expr::Kind::load) return {};
  if (out.used.empty()) return out;
  const bool b2b = nest.has_inner_dots() && !nest.accumulates_scaled() && !is_deep(nest);
  const bool walked =
      b2b && dependence(nest)[static_cast<std::size_t>(out.load)][static_cast<std::size_t>(axes.k)];
  const bool same_type = compute_dtype(block.dtype) == compute_dtype(sym_of(nest, operand).dtype);
  return walked && same_type && are_said_along_one_axis(nest, axes, out.used) ? out : KeptBlock{};
}

}  // namespace tilewright::passes
