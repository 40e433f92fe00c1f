// By the structure of a choice: a bool, the block, a zero.
#include "passes/tiling/kept_block.h"

#include "passes/tiling/chain_tiles.h"

#include <algorithm>
#include <set>

namespace tilewright::passes {

namespace {

const Sym& sym_of(const GroupProgram& program, int s) { return program.syms[static_cast<std::size_t>(s)]; }

// "where" is the only row op of three operands.
bool chooses(const Sym& s) {
  return (s.kind == Sym::Kind::where || s.kind == Sym::Kind::op) && s.operands.size() == 3;
}

bool is_zero(const Sym& s) { return s.kind == Sym::Kind::constant && s.number.f == 0 && s.number.i == 0; }

// Variables that the tiles of a chain's dots walk.
std::set<int> tile_variables(const GroupProgram& program, const DotAxes& axes) {
  std::set<int> out = {axes.m, axes.n, axes.k};
  for (std::size_t v = 0; v < program.inner.size(); ++v)
    if (program.inner[v]) out.insert(static_cast<int>(v));
  return out;
}

// Bools that change along one axis of a tile at most, and are computed of positions, of loads that are the
// same for all of it, and of vectors of integers and bools.
bool are_said_along_one_axis(const GroupProgram& program, const DotAxes& axes, const std::vector<int>& used) {
  const std::vector<std::vector<bool>> depends = dependence(program);
  const std::set<int> tile = tile_variables(program, axes);
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
  const std::vector<bool> parts = program.made_of(used);
  for (int s = 0; s < static_cast<int>(parts.size()); ++s) {
    if (!parts[static_cast<std::size_t>(s)]) continue;
    const Sym& m = sym_of(program, s);
    const Sym::Kind kind = m.kind;
    const bool plain = m.offset.is_affine() && m.dynamic.empty() && m.mask < 0 && !is_float(m.dtype);
    if (kind == Sym::Kind::load
            ? along(s) > 0 && !plain
            : kind != Sym::Kind::index && kind != Sym::Kind::constant && kind != Sym::Kind::op &&
                  kind != Sym::Kind::cast && kind != Sym::Kind::in_range && kind != Sym::Kind::where)
      return false;
  }
  return true;
}

}  // namespace

KeptBlock kept_block(const GroupProgram& program, const DotAxes& axes, int operand) {
  KeptBlock out{operand, {}};
  while (chooses(sym_of(program, out.load)) &&
         is_zero(sym_of(program, sym_of(program, out.load).operands[2]))) {
    out.used.push_back(sym_of(program, out.load).operands[0]);
    out.load = sym_of(program, out.load).operands[1];
  }
  const Sym& block = sym_of(program, out.load);
  if (block.kind != Sym::Kind::load) return {};
  if (out.used.empty()) return out;
  const bool chain = program.has_inner_dots() && !program.adds_up_dots() && !is_deep(program);
  const bool walked =
      chain && dependence(program)[static_cast<std::size_t>(out.load)][static_cast<std::size_t>(axes.k)];
  const bool same_type = compute_dtype(block.dtype) == compute_dtype(sym_of(program, operand).dtype);
  return walked && same_type && are_said_along_one_axis(program, axes, out.used) ? out : KeptBlock{};
}

}  // namespace tilewright::passes
