// The side of few rows is written out row by row; what does not depend on it is shared by all of them.
#include "passes/dot_as_sums.h"

#include "passes/dot_axes.h"

#include <algorithm>
#include <set>

namespace tilewright::passes {

namespace {

// Rows that one loop sums: each takes a register for every element that a thread holds of a block, which is
// what 16 bytes hold of the narrowest operand.
constexpr Index kMostRows = 8, kMostSums = 64, kVectorBytes = 16;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// `program` with its variable `v` written out: everything that depends on it stands there once for each
// value.
GroupProgram unrolled(const GroupProgram& program, int v) {
  const std::vector<std::vector<bool>> depends = dependence(program);
  GroupProgram out;
  for (std::size_t u = 0; u < program.extents.size(); ++u) {
    if (u == at(v)) continue;
    out.extents.push_back(program.extents[u]);
    out.reduced.push_back(program.reduced[u]);
    out.inner.push_back(program.inner[u]);
  }
  std::vector<int> shared(program.syms.size(), -1);
  for (Index row = 0; row < program.extents[at(v)]; ++row) {
    const auto by = [&](int u) { return u == v ? IndexExpr(row) : IndexExpr::variable(u < v ? u : u - 1); };
    std::vector<int> renamed = shared;
    for (std::size_t s = 0; s < program.syms.size(); ++s) {
      if (renamed[s] >= 0) continue;
      Sym sym = program.syms[s];
      for (int& o : sym.operands) o = renamed[at(o)];
      for (auto& [o, stride] : sym.dynamic) o = renamed[at(o)];
      if (sym.mask >= 0) sym.mask = renamed[at(sym.mask)];
      sym.offset = substitute(sym.offset, by, out.extents);
      out.syms.push_back(std::move(sym));
      renamed[s] = static_cast<int>(out.syms.size()) - 1;
      if (!depends[s][at(v)]) shared[s] = renamed[s];
    }
    for (ProgramOutput o : program.outputs) {
      o.sym = renamed[at(o.sym)];
      if (o.mask >= 0) o.mask = renamed[at(o.mask)];
      for (auto& [sym, stride] : o.dynamic) sym = renamed[at(sym)];
      o.offset = substitute(o.offset, by, out.extents);
      out.outputs.push_back(std::move(o));
    }
  }
  return out;
}

// Operands meet in the type of the dot, products and sums are its accumulator's.
GroupProgram with_sums(const GroupProgram& program) {
  GroupProgram out = program;
  out.syms.clear();
  std::vector<int> renamed;
  const auto push = [&](Sym sym) {
    out.syms.push_back(std::move(sym));
    return static_cast<int>(out.syms.size()) - 1;
  };
  const auto in_type = [&](int s, DType dtype) {
    const Sym& from = out.syms[at(s)];
    if (from.dtype == dtype) return s;
    return push({.kind = Sym::Kind::cast,
                 .operands = {s},
                 .dtype = dtype,
                 .reduced = from.reduced,
                 .level = from.level});
  };
  for (const Sym& s : program.syms) {
    Sym sym = s;
    for (int& o : sym.operands) o = renamed[at(o)];
    for (auto& [o, stride] : sym.dynamic) o = renamed[at(o)];
    if (sym.mask >= 0) sym.mask = renamed[at(sym.mask)];
    if (sym.kind != Sym::Kind::dot) {
      renamed.push_back(push(std::move(sym)));
      continue;
    }
    const DType sums = accumulator(s.dtype);
    std::vector<int> factors;
    factors.reserve(sym.operands.size());
    for (std::size_t side : {0, 1})
      factors.push_back(in_type(in_type(sym.operands[side], s.meet[side]), sums));
    const int product = push({.kind = Sym::Kind::product,
                              .operands = factors,
                              .dtype = sums,
                              .reduced = true,
                              .level = s.level - 1});
    sym.kind = Sym::Kind::reduce;
    sym.operands = {product};
    sym.dtype = sums;
    renamed.push_back(in_type(push(std::move(sym)), s.dtype));
  }
  for (ProgramOutput& o : out.outputs) {
    o.sym = renamed[at(o.sym)];
    if (o.mask >= 0) o.mask = renamed[at(o.mask)];
    for (auto& [sym, stride] : o.dynamic) sym = renamed[at(sym)];
  }
  return out;
}

// The rows of what is added up as they were written: blocks of the result are stored along its rows.
GroupProgram with_rows_first(GroupProgram program) {
  for (Sym& s : program.syms) {
    if (!s.adds_up) continue;
    const auto is_load = [&](int o) { return program.syms[at(o)].kind == Sym::Kind::load; };
    if (is_load(s.operands[0]) || !is_load(s.operands[1])) continue;
    std::swap(s.operands[0], s.operands[1]);
    std::swap(s.meet[0], s.meet[1]);
  }
  return program;
}

Index most_rows(const GroupProgram& program) {
  const std::vector<bool> read = program.made_of(program.syms[at(program.dot())].operands);
  Index narrowest = 8;
  for (std::size_t s = 0; s < read.size(); ++s)
    if (read[s] && program.syms[s].kind == Sym::Kind::load)
      narrowest = std::min(narrowest, static_cast<Index>(size_bytes(program.syms[s].dtype)));
  return std::min(kMostRows, kMostSums * narrowest / kVectorBytes);
}

bool has_other_reductions(const GroupProgram& program) {
  return std::any_of(program.syms.begin(), program.syms.end(),
                     [](const Sym& s) { return s.kind == Sym::Kind::reduce || s.kind == Sym::Kind::scan; });
}

std::size_t view_count(const GroupProgram& program) {
  return program.outputs.size() +
         static_cast<std::size_t>(std::count_if(program.syms.begin(), program.syms.end(),
                                                [](const Sym& s) { return s.kind == Sym::Kind::load; }));
}

}  // namespace

GroupProgram best_form(const GroupProgram& program, const tile::Target& target) {
  if (target.kind != tile::TargetKind::cuda) return with_rows_first(program);  // its dots know few rows
  if (program.dot() < 0 || program.is_chain() || has_other_reductions(program)) return program;
  if (std::find(program.extents.begin(), program.extents.end(), 0) != program.extents.end()) return program;
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || axes.n < 0) return with_sums(program);
  const int few = program.extents[at(axes.m)] <= program.extents[at(axes.n)] ? axes.m : axes.n;
  if (program.extents[at(few)] > most_rows(program) || target.any_size) return program;
  if (dot_on_tensor_cores(program, target)) return program;
  GroupProgram rows = unrolled(program, few);
  // Each row has views of its own.
  return view_count(rows) <= kMaxViews ? with_sums(rows) : program;
}

}  // namespace tilewright::passes
