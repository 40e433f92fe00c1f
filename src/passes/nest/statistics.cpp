// Which statistics a program may have.
#include "passes/nest/statistics.h"

#include "passes/nest/dot_axes.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_statistic(const Sym& s) { return s.kind == Sym::Kind::statistic; }

std::vector<int> statistics_behind(const GroupProgram& program, int sym) {
  std::vector<int> out;
  const std::vector<bool> parts = made_above_statistics(program, sym);
  for (int s : statistics_of(program))
    if (parts[at(s)]) out.push_back(s);
  return out;
}

// Whether an epilogue reduction takes whole variables of an axis that views cut.
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

const IndexExpr& reduced_by(const GroupProgram& program, int statistic) {
  return program.syms[at(statistic)].offset;
}

}  // namespace tilewright::passes
