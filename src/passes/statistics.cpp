// Which statistics a program may have, and the programs that finish them.
#include "passes/statistics.h"

#include "passes/dot_axes.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_statistic(const Sym& s) { return s.kind == Sym::Kind::statistic; }

// What a sym is made of down to statistics, these among it.
std::vector<bool> made_above_statistics(const GroupProgram& program, int sym) {
  std::vector<bool> found(program.syms.size());
  found[at(sym)] = true;
  for (std::size_t s = found.size(); s-- > 0;) {
    const Sym& m = program.syms[s];
    if (!found[s] || is_statistic(m)) continue;
    for (int o : m.operands) found[at(o)] = true;
    for (auto [o, stride] : m.dynamic) found[at(o)] = true;
    if (m.mask >= 0) found[at(m.mask)] = true;
  }
  return found;
}

std::vector<int> statistics_behind(const GroupProgram& program, int sym) {
  std::vector<int> out;
  const std::vector<bool> parts = made_above_statistics(program, sym);
  for (int s : statistics_of(program))
    if (parts[at(s)]) out.push_back(s);
  return out;
}

const IndexExpr& reduced_by(const GroupProgram& program, int statistic) {
  return program.syms[at(statistic)].offset;
}

// Of an axis that views cut, whole variables.
bool reduces_whole_variables(const GroupProgram& program, int statistic) {
  const IndexExpr& by = reduced_by(program, statistic);
  Index size = 1;
  for (int v : program.parallel_variables())
    if (by.depends_on(v)) size *= program.extents[at(v)];
  return by.is_affine() && range(by, program.extents).low == 0 && range(by, program.extents).high + 1 == size;
}

// Only the last matmul's loop stands before them.
bool have_one_loop(const GroupProgram& program) {
  if (program.dot() < 0 || program.has_inner_dots() || program.levels() != 1) return false;
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || axes.n < 0) return false;
  const bool others = std::any_of(program.syms.begin(), program.syms.end(), [](const Sym& s) {
    return s.kind == Sym::Kind::reduce || s.kind == Sym::Kind::scan;
  });
  const std::vector<int> all = statistics_of(program);
  return !others && std::all_of(all.begin(), all.end(), [&](int s) {
    const IndexExpr& by = reduced_by(program, s);
    return reduces_whole_variables(program, s) && (by.depends_on(axes.m) || by.depends_on(axes.n));
  });
}

}  // namespace

std::vector<int> statistics_of(const GroupProgram& program) {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(program.syms.size()); ++s)
    if (is_statistic(program.syms[at(s)])) out.push_back(s);
  return out;
}

int statistic_behind(const GroupProgram& program, int sym) {
  const std::vector<int> all = statistics_behind(program, sym);
  return all.empty() ? -1 : all.front();
}

std::vector<bool> held_variables(const GroupProgram& program) {
  std::vector<bool> held(program.extents.size());
  if (statistics_of(program).empty()) return held;
  const std::vector<std::vector<bool>> depends = dependence(program);
  // The statistics that `sym` is computed of: all of them (where it is reduced once more), or those beside
  // which a product stands, or whose value is stored at many places: along what they reduced.
  const auto hold = [&](int sym, const IndexExpr* stored_at) {
    const bool is_reduced = stored_at == nullptr;
    const std::vector<bool> parts = made_above_statistics(program, sym);
    bool beside_product = false;
    for (std::size_t s = 0; s < parts.size(); ++s)
      beside_product = beside_product || (parts[s] && program.syms[s].kind == Sym::Kind::dot);
    for (int s : statistics_of(program)) {
      if (!parts[at(s)]) continue;
      bool stands_along = is_reduced || beside_product;
      for (std::size_t v = 0; v < held.size() && !stands_along; ++v) {
        const int variable = static_cast<int>(v);
        const bool varies = depends[at(sym)][v] || stored_at->depends_on(variable);
        stands_along = varies && reduced_by(program, s).depends_on(variable);
      }
      for (std::size_t v = 0; v < held.size(); ++v)
        held[v] = held[v] || (stands_along && reduced_by(program, s).depends_on(static_cast<int>(v)));
    }
  };
  for (int s : statistics_of(program)) hold(program.syms[at(s)].operands[0], nullptr);
  for (const ProgramOutput& o : program.outputs) hold(o.sym, &o.offset);
  return held;
}

bool can_leave_statistics(const GroupProgram& program) {
  if (statistics_of(program).empty()) return true;
  if (!have_one_loop(program)) return false;
  const DotAxes axes = dot_axes(program);
  const std::vector<bool> held = held_variables(program);
  // Beside several sums a thread has registers for fewer rows of each.
  const Index most_rows = program.is_chain() ? kMostHeld / 2 : kMostHeld;
  for (int v = 0; v < static_cast<int>(held.size()); ++v)
    if (held[at(v)] &&
        ((v != axes.m && v != axes.n) || program.extents[at(v)] > (v == axes.m ? most_rows : kMostHeld)))
      return false;
  const auto is_held = [&](int s) {
    for (int v = 0; v < static_cast<int>(held.size()); ++v)
      if (reduced_by(program, s).depends_on(v) && !held[at(v)]) return false;
    return true;
  };
  for (const ProgramOutput& o : program.outputs) {
    const std::vector<int> of = statistics_behind(program, o.sym);
    if (o.accumulate) return false;
    if (std::all_of(of.begin(), of.end(), is_held)) continue;
    const IndexExpr& by = reduced_by(program, of.front());
    if (std::any_of(of.begin(), of.end(), [&](int s) { return !(reduced_by(program, s) == by); }))
      return false;
  }
  return true;
}

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
    if (is_statistic(sym)) {
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
