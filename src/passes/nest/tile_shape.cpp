// What follows from how a program is cut.
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

std::vector<SharedPart> shared_parts(const LoopNest& nest) {
  std::vector<SharedPart> out;
  for (int s = 0; s < static_cast<int>(nest.exprs.size()); ++s) {
    const Expr& m = nest.exprs[static_cast<std::size_t>(s)];
    if (m.kind != Expr::Kind::reduce && !nest.is_outer_dot(s)) continue;
    out.push_back({s, m.dtype});
    if (m.kind == Expr::Kind::reduce && finds_place(m.monoid))
      out.push_back(
          {s, compute_dtype(nest.exprs[static_cast<std::size_t>(m.operands[0])].dtype), /*extreme=*/true});
  }
  return out;
}

std::vector<int> partial_variables(const LoopNest& nest, const TileShape& shape, int expr) {
  std::vector<int> out = nest.parallel_variables();
  if (nest.dot() >= 0 && !nest.is_outer_dot(expr)) std::erase(out, shape.column);
  return out;
}

Index program_count(const LoopNest& nest, const TileShape& shape) {
  Index count = shape.split_k;
  for (int v : nest.parallel_variables()) {
    const Index block = v == shape.row ? shape.rows : v == shape.column ? shape.columns : 1;
    count *= ceil_div(nest.extents[static_cast<std::size_t>(v)], block);
  }
  return count;
}

}  // namespace tilewright::passes
