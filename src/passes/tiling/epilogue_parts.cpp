// Parts of epilogue reductions by the blocks of a shape, and the programs that finish them.
#include "passes/tiling/epilogue_parts.h"

#include "passes/nest/epilogue_reductions.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {}  // namespace

Index epilogue_parts(const LoopNest& nest, const TileShape& shape, int epilogue_reduction) {
  Index parts = 1;
  for (int v : nest.parallel_variables()) {
    const Index block = v == shape.row ? shape.rows : v == shape.column ? shape.columns : 1;
    if (reduced_by(nest, epilogue_reduction).depends_on(v)) parts *= ceil_div(nest.extents[at(v)], block);
  }
  return parts;
}

Index elements_of_parts(const LoopNest& nest, const TileShape& shape, int epilogue_reduction) {
  Index elements = epilogue_parts(nest, shape, epilogue_reduction);
  for (int v : nest.parallel_variables())
    if (!reduced_by(nest, epilogue_reduction).depends_on(v)) elements *= nest.extents[at(v)];
  return elements;
}

std::vector<int> epilogue_reductions_in_parts(const LoopNest& nest, const TileShape& shape) {
  std::vector<int> out = epilogue_reductions_of(nest);
  std::erase_if(out, [&](int s) { return epilogue_parts(nest, shape, s) == 1; });
  return out;
}

bool is_in_parts(const LoopNest& nest, const TileShape& shape, const ProgramOutput& output) {
  const int epilogue_reduction = epilogue_reduction_behind(nest, output.expr);
  return epilogue_reduction >= 0 && epilogue_parts(nest, shape, epilogue_reduction) > 1;
}

namespace {

// The program of the outputs made of epilogue reductions over the variables of `by`.
LoopNest finishing_program(const LoopNest& nest, const TileShape& shape, const IndexExpr& by) {
  LoopNest out;
  std::map<int, int> renamed;
  IndexExpr place = 0;
  Index size = 1;
  const auto add_variable = [&](Index extent, bool reduced) {
    out.extents.push_back(extent);
    out.reduced.push_back(reduced);
    out.inner.push_back(false);
    return static_cast<int>(out.extents.size()) - 1;
  };
  for (int v : nest.parallel_variables()) {
    if (by.depends_on(v)) continue;
    const Index extent = nest.extents[at(v)];
    renamed[v] = add_variable(extent, false);
    place = place * extent + IndexExpr::variable(renamed[v]);
    size *= extent;
  }
  const std::vector<int> in_parts = epilogue_reductions_in_parts(nest, shape);
  std::vector<int> stored;
  for (const ProgramOutput& o : nest.outputs) {
    const int epilogue_reduction = epilogue_reduction_behind(nest, o.expr);
    if (epilogue_reduction >= 0 && reduced_by(nest, epilogue_reduction) == by) stored.push_back(o.expr);
  }
  const int first = epilogue_reduction_behind(nest, stored.front());
  const int part = add_variable(epilogue_parts(nest, shape, first), true);
  place = place + IndexExpr::variable(part) * size;

  std::vector<bool> needed(nest.exprs.size());
  for (int o : stored) {
    const std::vector<bool> parts = made_above_epilogue_reductions(nest, o);
    for (std::size_t s = 0; s < needed.size(); ++s) needed[s] = needed[s] || parts[s];
  }
  const auto by_name = [&](int v) { return IndexExpr::variable(renamed.at(v)); };
  std::map<int, int> exprs;
  for (std::size_t s = 0; s < needed.size(); ++s) {
    if (!needed[s]) continue;
    Expr expr = nest.exprs[s];
    if (expr.kind == Expr::Kind::epilogue_reduction) {
      const auto temporary = std::find(in_parts.begin(), in_parts.end(), static_cast<int>(s)) -
                             in_parts.begin() + shape.epilogue_reductions;
      out.exprs.push_back({.kind = Expr::Kind::load,
                           .node = -1 - static_cast<int>(temporary),
                           .offset = place,
                           .dtype = expr.dtype,
                           .reduced = true});
      expr.kind = Expr::Kind::reduce;
      expr.operands = {static_cast<int>(out.exprs.size()) - 1};
      expr.offset = 0;
    } else {
      rename(expr, [&](int o) { return exprs.at(o); });
      expr.offset = substitute(expr.offset, by_name, out.extents);
    }
    out.exprs.push_back(std::move(expr));
    exprs[static_cast<int>(s)] = static_cast<int>(out.exprs.size()) - 1;
  }
  for (ProgramOutput o : nest.outputs) {
    if (std::find(stored.begin(), stored.end(), o.expr) == stored.end()) continue;
    o.expr = exprs.at(o.expr);
    o.offset = substitute(o.offset, by_name, out.extents);
    out.outputs.push_back(std::move(o));
  }
  return out;
}

}  // namespace

std::vector<LoopNest> finishing_programs(const LoopNest& nest, const TileShape& shape) {
  std::vector<LoopNest> out;
  std::vector<IndexExpr> done;
  for (int s : epilogue_reductions_in_parts(nest, shape)) {
    const IndexExpr& by = reduced_by(nest, s);
    if (std::find(done.begin(), done.end(), by) != done.end()) continue;
    done.push_back(by);
    out.push_back(finishing_program(nest, shape, by));
  }
  return out;
}

}  // namespace tilewright::passes
