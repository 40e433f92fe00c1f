// What follows from how a program is cut.
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

std::vector<int> shared_reductions(const LoopNest& nest) {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(nest.exprs.size()); ++s)
    if (nest.exprs[static_cast<std::size_t>(s)].kind == Expr::Kind::reduce || nest.is_outer_dot(s))
      out.push_back(s);
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
