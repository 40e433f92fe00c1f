// Parts of statistics by the blocks of a shape, and the programs that finish them.
#include "passes/tiling/statistic_parts.h"

#include "passes/nest/statistics.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Index statistic_parts(const GroupProgram& program, const TileShape& shape, int statistic) {
  Index parts = 1;
  for (int v : program.parallel_variables()) {
    const Index block = v == shape.row ? shape.rows : v == shape.column ? shape.columns : 1;
    if (reduced_by(program, statistic).depends_on(v)) parts *= ceil_div(program.extents[at(v)], block);
  }
  return parts;
}

Index elements_of_parts(const GroupProgram& program, const TileShape& shape, int statistic) {
  Index elements = statistic_parts(program, shape, statistic);
  for (int v : program.parallel_variables())
    if (!reduced_by(program, statistic).depends_on(v)) elements *= program.extents[at(v)];
  return elements;
}

std::vector<int> statistics_in_parts(const GroupProgram& program, const TileShape& shape) {
  std::vector<int> out = statistics_of(program);
  std::erase_if(out, [&](int s) { return statistic_parts(program, shape, s) == 1; });
  return out;
}

bool is_in_parts(const GroupProgram& program, const TileShape& shape, const ProgramOutput& output) {
  const int statistic = statistic_behind(program, output.sym);
  return statistic >= 0 && statistic_parts(program, shape, statistic) > 1;
}

namespace {

// The program of the outputs made of statistics over the variables of `by`.
GroupProgram finishing_program(const GroupProgram& program, const TileShape& shape, const IndexExpr& by) {
  GroupProgram out;
  std::map<int, int> renamed;
  IndexExpr place = 0;
  Index size = 1;
  const auto add_variable = [&](Index extent, bool reduced) {
    out.extents.push_back(extent);
    out.reduced.push_back(reduced);
    out.inner.push_back(false);
    return static_cast<int>(out.extents.size()) - 1;
  };
  for (int v : program.parallel_variables()) {
    if (by.depends_on(v)) continue;
    const Index extent = program.extents[at(v)];
    renamed[v] = add_variable(extent, false);
    place = place * extent + IndexExpr::variable(renamed[v]);
    size *= extent;
  }
  const std::vector<int> in_parts = statistics_in_parts(program, shape);
  std::vector<int> stored;
  for (const ProgramOutput& o : program.outputs) {
    const int statistic = statistic_behind(program, o.sym);
    if (statistic >= 0 && reduced_by(program, statistic) == by) stored.push_back(o.sym);
  }
  const int first = statistic_behind(program, stored.front());
  const int part = add_variable(statistic_parts(program, shape, first), true);
  place = place + IndexExpr::variable(part) * size;

  std::vector<bool> needed(program.syms.size());
  for (int o : stored) {
    const std::vector<bool> parts = made_above_statistics(program, o);
    for (std::size_t s = 0; s < needed.size(); ++s) needed[s] = needed[s] || parts[s];
  }
  const auto rename = [&](int v) { return IndexExpr::variable(renamed.at(v)); };
  std::map<int, int> syms;
  for (std::size_t s = 0; s < needed.size(); ++s) {
    if (!needed[s]) continue;
    Sym sym = program.syms[s];
    if (sym.kind == Sym::Kind::statistic) {
      const auto temporary = std::find(in_parts.begin(), in_parts.end(), static_cast<int>(s)) -
                             in_parts.begin() + shape.statistics;
      out.syms.push_back({.kind = Sym::Kind::load,
                          .node = -1 - static_cast<int>(temporary),
                          .offset = place,
                          .dtype = sym.dtype,
                          .reduced = true});
      sym.kind = Sym::Kind::reduce;
      sym.operands = {static_cast<int>(out.syms.size()) - 1};
      sym.offset = 0;
    } else {
      for (int& o : sym.operands) o = syms.at(o);
      for (auto& [o, stride] : sym.dynamic) o = syms.at(o);
      if (sym.mask >= 0) sym.mask = syms.at(sym.mask);
      sym.offset = substitute(sym.offset, rename, out.extents);
    }
    out.syms.push_back(std::move(sym));
    syms[static_cast<int>(s)] = static_cast<int>(out.syms.size()) - 1;
  }
  for (ProgramOutput o : program.outputs) {
    if (std::find(stored.begin(), stored.end(), o.sym) == stored.end()) continue;
    o.sym = syms.at(o.sym);
    o.offset = substitute(o.offset, rename, out.extents);
    out.outputs.push_back(std::move(o));
  }
  return out;
}

}  // namespace

std::vector<GroupProgram> finishing_programs(const GroupProgram& program, const TileShape& shape) {
  std::vector<GroupProgram> out;
  std::vector<IndexExpr> done;
  for (int s : statistics_in_parts(program, shape)) {
    const IndexExpr& by = reduced_by(program, s);
    if (std::find(done.begin(), done.end(), by) != done.end()) continue;
    done.push_back(by);
    out.push_back(finishing_program(program, shape, by));
  }
  return out;
}

}  // namespace tilewright::passes
