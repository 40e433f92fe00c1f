// What follows from how a program is cut.
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

std::vector<int> shared_reductions(const GroupProgram& program) {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(program.syms.size()); ++s)
    if (program.syms[static_cast<std::size_t>(s)].kind == Sym::Kind::reduce || program.is_outer_dot(s))
      out.push_back(s);
  return out;
}

std::vector<int> partial_variables(const GroupProgram& program, const TileShape& shape, int sym) {
  std::vector<int> out = program.parallel_variables();
  if (program.dot() >= 0 && !program.is_outer_dot(sym)) std::erase(out, shape.column);
  return out;
}

Index program_count(const GroupProgram& program, const TileShape& shape) {
  Index count = shape.splits;
  for (int v : program.parallel_variables()) {
    const Index block = v == shape.row ? shape.rows : v == shape.column ? shape.columns : 1;
    count *= ceil_div(program.extents[static_cast<std::size_t>(v)], block);
  }
  return count;
}

}  // namespace tilewright::passes
