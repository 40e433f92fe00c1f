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

// Columns that a product of one row may compute side by side since they share what they read. Two are what 4
// bits need (docs/notes/2026-11-22-few-rows-and-groups.md); four are chosen, not measured.
constexpr Index kMostSharedColumns = 4;

// `program` with its variable `v` written out: everything that depends on it stands there once for each
// value.
LoopNest unrolled(const LoopNest& nest, int v) {
  const std::vector<std::vector<bool>> depends = dependence(nest);
  LoopNest out;
  for (std::size_t u = 0; u < nest.extents.size(); ++u) {
    if (u == at(v)) continue;
    out.extents.push_back(nest.extents[u]);
    out.reduced.push_back(nest.reduced[u]);
    out.inner.push_back(nest.inner[u]);
  }
  std::vector<int> shared(nest.exprs.size(), -1);
  for (Index row = 0; row < nest.extents[at(v)]; ++row) {
    const auto by = [&](int u) { return u == v ? IndexExpr(row) : IndexExpr::variable(u < v ? u : u - 1); };
    std::vector<int> renamed = shared;
    const auto by_name = [&](int s) { return renamed[at(s)]; };
    for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
      if (renamed[s] >= 0) continue;
      Expr expr = nest.exprs[s];
      rename(expr, by_name);
      expr.offset = substitute(expr.offset, by, out.extents);
      out.exprs.push_back(std::move(expr));
      renamed[s] = static_cast<int>(out.exprs.size()) - 1;
      if (!depends[s][at(v)]) shared[s] = renamed[s];
    }
    for (ProgramOutput o : nest.outputs) {
      rename(o, by_name);
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
std::optional<Parts> parts_of(const ir::Graph& graph, const Expr& factor,
                              const std::vector<std::vector<bool>>& depends, int depth) {
  if (factor.kind != Expr::Kind::op || graph.node(factor.node).op != &ops::kMul) return std::nullopt;
  for (std::size_t side : {0, 1}) {
    const int walked = factor.operands[side], resting = factor.operands[1 - side];
    if (depends[at(walked)][at(depth)] && !depends[at(resting)][at(depth)]) return Parts{walked, resting};
  }
  return std::nullopt;
}

// Operands are cast to the dot's operand type, products and sums are its accumulator's. A scale that is the
// same along the depth comes last, behind what is summed first.
LoopNest with_sums(const ir::Graph& graph, const LoopNest& nest) {
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const int depth = nest.reduced_variables().back();
  LoopNest out = nest;
  out.exprs.clear();
  std::vector<int> renamed;
  const auto by_name = [&](int s) { return renamed[at(s)]; };
  const auto push = [&](Expr expr) {
    out.exprs.push_back(std::move(expr));
    return static_cast<int>(out.exprs.size()) - 1;
  };
  const auto in_type = [&](int s, DType dtype) {
    const Expr& from = out.exprs[at(s)];
    if (from.dtype == dtype) return s;
    return push({.kind = Expr::Kind::cast,
                 .operands = {s},
                 .dtype = dtype,
                 .reduced = from.reduced,
                 .level = from.level});
  };
  for (const Expr& s : nest.exprs) {
    Expr expr = s;
    rename(expr, by_name);
    if (expr.kind != Expr::Kind::dot) {
      renamed.push_back(push(std::move(expr)));
      continue;
    }
    const DType sums = accumulator(s);
    const auto product_of = [&](int a, int b) {
      return push({.kind = Expr::Kind::product,
                   .operands = {a, b},
                   .dtype = sums,
                   .reduced = true,
                   .level = s.level - 1});
    };
    std::optional<Parts> parts;
    std::vector<int> factors;
    for (std::size_t side : {0, 1}) {
      const Expr& factor = nest.exprs[at(s.operands[side])];
      const auto apart = s.operand_dtypes[side] == sums && factor.dtype == sums && !parts
                             ? parts_of(graph, factor, depends, depth)
                             : std::nullopt;
      factors.push_back(apart ? in_type(renamed[at(apart->walked)], sums)
                              : in_type(in_type(expr.operands[side], s.operand_dtypes[side]), sums));
      if (apart) parts = apart;
    }
    int product = product_of(factors[0], factors[1]);
    if (parts) product = product_of(product, in_type(renamed[at(parts->resting)], sums));
    expr.kind = Expr::Kind::reduce;
    expr.operands = {product};
    expr.dtype = sums;
    renamed.push_back(in_type(push(std::move(expr)), s.dtype));
  }
  for (ProgramOutput& o : out.outputs) rename(o, by_name);
  return out;
}

// The rows of what is added up as they were written: blocks of the result are stored along its rows.
std::optional<LoopNest> with_rows_first(const LoopNest& nest) {
  if (!nest.transposed) return std::nullopt;
  LoopNest out = nest;
  exchange_added_dots(out);
  out.transposed = false;
  return out;
}

// Rows that one loop sums: each takes a register for every element that a thread holds of a block, which is
// what its widest access holds of the narrowest operand.
Index most_rows(const LoopNest& nest, int dot, const tile::Target& target) {
  const std::vector<bool> read = nest.made_of(nest.exprs[at(dot)].operands);
  Index narrowest = 8;
  for (std::size_t s = 0; s < read.size(); ++s)
    if (read[s] && nest.exprs[s].kind == Expr::Kind::load)
      narrowest = std::min(narrowest, static_cast<Index>(size_bytes(nest.exprs[s].dtype)));
  return std::min(target.vector_dots.sum_rows, target.vector_dots.sums * narrowest / target.vector_bytes);
}

bool has_other_reductions(const LoopNest& nest) {
  return std::any_of(nest.exprs.begin(), nest.exprs.end(), [](const Expr& s) {
    return s.kind == Expr::Kind::reduce || takes_whole_row(s) || s.kind == Expr::Kind::epilogue_reduction;
  });
}

std::size_t view_count(const LoopNest& nest) {
  return nest.outputs.size() +
         static_cast<std::size_t>(std::count_if(nest.exprs.begin(), nest.exprs.end(),
                                                [](const Expr& s) { return s.kind == Expr::Kind::load; }));
}

// The bytes of a load's elements, as often as its offset says.
double bytes_of(const LoopNest& nest, const Expr& load) {
  auto bytes = static_cast<double>(size_bytes(load.dtype));
  for (std::size_t v = 0; v < nest.extents.size(); ++v)
    if (load.offset.depends_on(static_cast<int>(v))) bytes *= static_cast<double>(nest.extents[v]);
  return bytes;
}

// Products of one row read once what several columns share of the matrix, as numbers of 4 bits share a byte.
LoopNest with_shared_columns(LoopNest nest) {
  const Expr* largest = nullptr;
  for (const Expr& s : nest.exprs)
    if (s.kind == Expr::Kind::load && (!largest || bytes_of(nest, s) > bytes_of(nest, *largest)))
      largest = &s;
  for (int v : nest.parallel_variables()) {
    const bool shares =
        largest && !largest->offset.depends_on(v) && nest.extents[at(v)] <= kMostSharedColumns;
    if (shares && nest.parallel_variables().size() > 1) return unrolled(nest, v);
  }
  return nest;
}

// The sum over blocks of products of one block each, as one sum of products: what is computed of each product
// is a multiple of it, and summed. None where it is more, or where anything else is reduced or stored.
std::optional<LoopNest> with_flat_sums(const ir::Graph& graph, const LoopNest& nest) {
  const auto is_inner = [](const Expr& s) { return s.inner; };
  if (std::count_if(nest.exprs.begin(), nest.exprs.end(), is_inner) != 1) return std::nullopt;
  const auto dot = std::find_if(nest.exprs.begin(), nest.exprs.end(), is_inner);
  const int product = static_cast<int>(dot - nest.exprs.begin()), depth = dot->offset.single_variable();
  const DType sums = accumulator(*dot);
  if (sums != dot->dtype) return std::nullopt;
  std::vector<bool> multiple(nest.exprs.size());
  multiple[at(product)] = true;
  for (std::size_t s = at(product) + 1; s < nest.exprs.size(); ++s) {
    const Expr& m = nest.exprs[s];
    const auto of_it =
        std::count_if(m.operands.begin(), m.operands.end(), [&](int o) { return multiple[at(o)]; });
    if (m.kind == Expr::Kind::reduce) {  // any other would count its terms once for each of the depth
      if (of_it == 0 || m.monoid != tile::Monoid::sum) return std::nullopt;
      continue;
    }
    if (of_it == 0) continue;
    const bool times = m.kind == Expr::Kind::op && graph.node(m.node).op == &ops::kMul && of_it == 1;
    if (!times || m.dtype != sums) return std::nullopt;
    multiple[s] = true;
  }
  for (const ProgramOutput& o : nest.outputs)
    if (multiple[at(o.expr)]) return std::nullopt;  // a product by itself
  LoopNest out = nest;
  out.inner[at(depth)] = false;
  out.reduced[at(depth)] = true;
  out.exprs.clear();
  std::vector<int> renamed;
  const auto by_name = [&](int s) { return renamed[at(s)]; };
  for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
    Expr expr = nest.exprs[s];
    rename(expr, by_name);
    expr.reduced = expr.reduced || expr.offset.depends_on(depth);
    for (int o : expr.operands) expr.reduced = expr.reduced || out.exprs[at(o)].reduced;
    if (expr.kind == Expr::Kind::reduce) expr.reduced = false;
    if (static_cast<int>(s) == product) {
      for (std::size_t side : {0, 1})
        for (const DType dtype : {dot->operand_dtypes[side], sums}) {
          const Expr& from = out.exprs[at(expr.operands[side])];
          if (from.dtype == dtype) continue;
          out.exprs.push_back({.kind = Expr::Kind::cast,
                               .operands = {expr.operands[side]},
                               .dtype = dtype,
                               .reduced = from.reduced,
                               .level = from.level});
          expr.operands[side] = static_cast<int>(out.exprs.size()) - 1;
        }
      expr = {.kind = Expr::Kind::product, .operands = expr.operands, .dtype = sums, .reduced = true};
    }
    out.exprs.push_back(std::move(expr));
    renamed.push_back(static_cast<int>(out.exprs.size()) - 1);
  }
  for (ProgramOutput& o : out.outputs) rename(o, by_name);
  return out;
}

// Few rows of a sum over blocks of products, as quantised weights have them.
std::optional<LoopNest> few_added_rows(const ir::Graph& graph, const LoopNest& nest,
                                       const tile::Target& target) {
  const DotAxes axes = dot_axes(nest);
  if (axes.m < 0 || axes.n < 0) return std::nullopt;
  const int few = nest.extents[at(axes.m)] <= nest.extents[at(axes.n)] ? axes.m : axes.n;
  if (nest.extents[at(few)] > most_rows(nest, axes.dot, target)) return std::nullopt;
  const auto flat = with_flat_sums(graph, nest);
  if (!flat) return std::nullopt;
  LoopNest rows = unrolled(*flat, few);
  if (2 * nest.extents[at(few)] <= most_rows(nest, axes.dot, target))
    rows = with_shared_columns(std::move(rows));
  return view_count(rows) <= kMaxViews ? std::optional(std::move(rows)) : std::nullopt;
}

// One row times what is computed on its way: a dot would keep blocks of that.
bool is_computed_row(const LoopNest& nest) {
  if (nest.dot() < 0 || nest.is_b2b() || has_other_reductions(nest)) return false;
  const DotAxes axes = dot_axes(nest);
  if (axes.m >= 0 && axes.n >= 0) return false;
  const Expr& dot = nest.exprs[at(nest.dot())];
  return std::any_of(dot.operands.begin(), dot.operands.end(), [&](int o) {
    return nest.exprs[at(o)].kind != Expr::Kind::load && nest.exprs[at(o)].kind != Expr::Kind::cast;
  });
}

}  // namespace

std::optional<LoopNest> other_form(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  if (target.vector_dots.sum_rows == 0)  // its dots know few rows, but not of what is computed
    return is_computed_row(nest) ? std::optional(with_sums(graph, nest)) : with_rows_first(nest);
  if (std::find(nest.extents.begin(), nest.extents.end(), 0) != nest.extents.end()) return std::nullopt;
  if (nest.accumulates_scaled() && !target.any_size && !b2b_on_matrix_unit(nest, target))
    return few_added_rows(graph, nest, target);
  if (nest.dot() < 0 || nest.is_b2b() || has_other_reductions(nest)) return std::nullopt;
  const DotAxes axes = dot_axes(nest);
  if (axes.m < 0 || axes.n < 0) return with_sums(graph, with_shared_columns(nest));
  const int few = nest.extents[at(axes.m)] <= nest.extents[at(axes.n)] ? axes.m : axes.n;
  if (nest.extents[at(few)] > most_rows(nest, nest.dot(), target) || target.any_size) return std::nullopt;
  if (dot_on_matrix_unit(nest, target)) return std::nullopt;
  LoopNest rows = unrolled(nest, few);
  // Each row has views of its own.
  return view_count(rows) <= kMaxViews ? std::optional(with_sums(graph, rows)) : std::nullopt;
}

}  // namespace tilewright::passes
