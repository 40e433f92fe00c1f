// The side of few rows is written out row by row; what does not depend on it is shared by all of them.
#include "passes/tiling/dot_as_sums.h"

#include "ops/rows.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/dot_frames.h"
#include "passes/tiling/dot_shapes.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tilewright::passes {

namespace {

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

// What a factor is a product of: a part that follows the depth, and one that is the same along it.
struct Parts {
  int walked = -1, resting = -1;
};
std::optional<Parts> parts_of(const ir::Graph& graph, const Sym& factor,
                              const std::vector<std::vector<bool>>& depends, int depth) {
  if (factor.kind != Sym::Kind::op || graph.node(factor.node).op != &ops::kMul) return std::nullopt;
  for (std::size_t side : {0, 1}) {
    const int walked = factor.operands[side], resting = factor.operands[1 - side];
    if (depends[at(walked)][at(depth)] && !depends[at(resting)][at(depth)]) return Parts{walked, resting};
  }
  return std::nullopt;
}

// Operands meet in the type of the dot, products and sums are its accumulator's. A scale that is the same
// along the depth comes last, behind what is summed first.
GroupProgram with_sums(const ir::Graph& graph, const GroupProgram& program) {
  const std::vector<std::vector<bool>> depends = dependence(program);
  const int depth = program.reduced_variables().back();
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
    const DType sums = accumulator(s);
    const auto product_of = [&](int a, int b) {
      return push({.kind = Sym::Kind::product,
                   .operands = {a, b},
                   .dtype = sums,
                   .reduced = true,
                   .level = s.level - 1});
    };
    std::optional<Parts> parts;
    std::vector<int> factors;
    for (std::size_t side : {0, 1}) {
      const Sym& factor = program.syms[at(s.operands[side])];
      const auto apart = s.meet[side] == sums && factor.dtype == sums && !parts
                             ? parts_of(graph, factor, depends, depth)
                             : std::nullopt;
      factors.push_back(apart ? in_type(renamed[at(apart->walked)], sums)
                              : in_type(in_type(sym.operands[side], s.meet[side]), sums));
      if (apart) parts = apart;
    }
    int product = product_of(factors[0], factors[1]);
    if (parts) product = product_of(product, in_type(renamed[at(parts->resting)], sums));
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
  if (program.turned) exchange_added_dots(program);
  program.turned = false;
  return program;
}

// Rows that one loop sums: each takes a register for every element that a thread holds of a block, which is
// what its widest access holds of the narrowest operand.
Index most_rows(const GroupProgram& program, int dot, const tile::Target& target) {
  const std::vector<bool> read = program.made_of(program.syms[at(dot)].operands);
  Index narrowest = 8;
  for (std::size_t s = 0; s < read.size(); ++s)
    if (read[s] && program.syms[s].kind == Sym::Kind::load)
      narrowest = std::min(narrowest, static_cast<Index>(size_bytes(program.syms[s].dtype)));
  return std::min(target.vector_dots.sum_rows, target.vector_dots.sums * narrowest / target.vector_bytes);
}

bool has_other_reductions(const GroupProgram& program) {
  return std::any_of(program.syms.begin(), program.syms.end(), [](const Sym& s) {
    return s.kind == Sym::Kind::reduce || s.kind == Sym::Kind::scan || s.kind == Sym::Kind::statistic;
  });
}

std::size_t view_count(const GroupProgram& program) {
  return program.outputs.size() +
         static_cast<std::size_t>(std::count_if(program.syms.begin(), program.syms.end(),
                                                [](const Sym& s) { return s.kind == Sym::Kind::load; }));
}

// The bytes of a load's elements, as often as its offset says.
double bytes_of(const GroupProgram& program, const Sym& load) {
  auto bytes = static_cast<double>(size_bytes(load.dtype));
  for (std::size_t v = 0; v < program.extents.size(); ++v)
    if (load.offset.depends_on(static_cast<int>(v))) bytes *= static_cast<double>(program.extents[v]);
  return bytes;
}

// Products of one row read once what several columns share of the matrix, as numbers of 4 bits share a byte.
GroupProgram with_shared_columns(GroupProgram program) {
  constexpr Index kMostShared = 4;
  const Sym* largest = nullptr;
  for (const Sym& s : program.syms)
    if (s.kind == Sym::Kind::load && (!largest || bytes_of(program, s) > bytes_of(program, *largest)))
      largest = &s;
  for (int v : program.parallel_variables()) {
    const bool shares = largest && !largest->offset.depends_on(v) && program.extents[at(v)] <= kMostShared;
    if (shares && program.parallel_variables().size() > 1) return unrolled(program, v);
  }
  return program;
}

// The sum over blocks of products of one block each, as one sum of products: what is computed of each product
// is a multiple of it, and summed. None where it is more, or where anything else is reduced or stored.
std::optional<GroupProgram> with_flat_sums(const ir::Graph& graph, const GroupProgram& program) {
  const auto is_inner = [](const Sym& s) { return s.inner; };
  if (std::count_if(program.syms.begin(), program.syms.end(), is_inner) != 1) return std::nullopt;
  const auto dot = std::find_if(program.syms.begin(), program.syms.end(), is_inner);
  const int product = static_cast<int>(dot - program.syms.begin()), depth = dot->offset.single_variable();
  const DType sums = accumulator(*dot);
  if (sums != dot->dtype) return std::nullopt;
  std::vector<bool> multiple(program.syms.size());
  multiple[at(product)] = true;
  for (std::size_t s = at(product) + 1; s < program.syms.size(); ++s) {
    const Sym& m = program.syms[s];
    const auto of_it =
        std::count_if(m.operands.begin(), m.operands.end(), [&](int o) { return multiple[at(o)]; });
    if (m.kind == Sym::Kind::reduce) {  // any other would count its terms once for each of the depth
      if (of_it == 0 || m.monoid != tile::Monoid::sum) return std::nullopt;
      continue;
    }
    if (of_it == 0) continue;
    const bool times = m.kind == Sym::Kind::op && graph.node(m.node).op == &ops::kMul && of_it == 1;
    if (!times || m.dtype != sums) return std::nullopt;
    multiple[s] = true;
  }
  for (const ProgramOutput& o : program.outputs)
    if (multiple[at(o.sym)]) return std::nullopt;  // a product by itself
  GroupProgram out = program;
  out.inner[at(depth)] = false;
  out.reduced[at(depth)] = true;
  out.syms.clear();
  std::vector<int> renamed;
  for (std::size_t s = 0; s < program.syms.size(); ++s) {
    Sym sym = program.syms[s];
    for (int& o : sym.operands) o = renamed[at(o)];
    for (auto& [o, stride] : sym.dynamic) o = renamed[at(o)];
    if (sym.mask >= 0) sym.mask = renamed[at(sym.mask)];
    sym.reduced = sym.reduced || sym.offset.depends_on(depth);
    for (int o : sym.operands) sym.reduced = sym.reduced || out.syms[at(o)].reduced;
    if (sym.kind == Sym::Kind::reduce) sym.reduced = false;
    if (static_cast<int>(s) == product) {
      for (std::size_t side : {0, 1})
        for (const DType dtype : {dot->meet[side], sums}) {
          const Sym& from = out.syms[at(sym.operands[side])];
          if (from.dtype == dtype) continue;
          out.syms.push_back({.kind = Sym::Kind::cast,
                              .operands = {sym.operands[side]},
                              .dtype = dtype,
                              .reduced = from.reduced,
                              .level = from.level});
          sym.operands[side] = static_cast<int>(out.syms.size()) - 1;
        }
      sym = {.kind = Sym::Kind::product, .operands = sym.operands, .dtype = sums, .reduced = true};
    }
    out.syms.push_back(std::move(sym));
    renamed.push_back(static_cast<int>(out.syms.size()) - 1);
  }
  for (ProgramOutput& o : out.outputs) {
    o.sym = renamed[at(o.sym)];
    if (o.mask >= 0) o.mask = renamed[at(o.mask)];
    for (auto& [sym, stride] : o.dynamic) sym = renamed[at(sym)];
  }
  return out;
}

// Few rows of a sum over blocks of products, as quantised weights have them.
std::optional<GroupProgram> few_added_rows(const ir::Graph& graph, const GroupProgram& program,
                                           const tile::Target& target) {
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || axes.n < 0) return std::nullopt;
  const int few = program.extents[at(axes.m)] <= program.extents[at(axes.n)] ? axes.m : axes.n;
  if (program.extents[at(few)] > most_rows(program, axes.dot, target)) return std::nullopt;
  const auto flat = with_flat_sums(graph, program);
  if (!flat) return std::nullopt;
  GroupProgram rows = unrolled(*flat, few);
  if (2 * program.extents[at(few)] <= most_rows(program, axes.dot, target))
    rows = with_shared_columns(std::move(rows));
  return view_count(rows) <= kMaxViews ? std::optional(std::move(rows)) : std::nullopt;
}

// One row times what is computed on its way: a dot would keep blocks of that.
bool is_computed_row(const GroupProgram& program) {
  if (program.dot() < 0 || program.is_chain() || has_other_reductions(program)) return false;
  const DotAxes axes = dot_axes(program);
  if (axes.m >= 0 && axes.n >= 0) return false;
  const Sym& dot = program.syms[at(program.dot())];
  return std::any_of(dot.operands.begin(), dot.operands.end(), [&](int o) {
    return program.syms[at(o)].kind != Sym::Kind::load && program.syms[at(o)].kind != Sym::Kind::cast;
  });
}

}  // namespace

GroupProgram best_form(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target) {
  if (target.vector_dots.sum_rows == 0)  // its dots know few rows, but not of what is computed
    return is_computed_row(program) ? with_sums(graph, program) : with_rows_first(program);
  if (std::find(program.extents.begin(), program.extents.end(), 0) != program.extents.end()) return program;
  if (program.adds_up_dots() && !target.any_size && !chains_on_matrix_unit(program, target))
    return few_added_rows(graph, program, target).value_or(program);
  if (program.dot() < 0 || program.is_chain() || has_other_reductions(program)) return program;
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || axes.n < 0) return with_sums(graph, with_shared_columns(program));
  const int few = program.extents[at(axes.m)] <= program.extents[at(axes.n)] ? axes.m : axes.n;
  if (program.extents[at(few)] > most_rows(program, program.dot(), target) || target.any_size) return program;
  if (dot_on_matrix_unit(program, target)) return program;
  GroupProgram rows = unrolled(program, few);
  // Each row has views of its own.
  return view_count(rows) <= kMaxViews ? with_sums(graph, rows) : program;
}

}  // namespace tilewright::passes
