// A group's program: walked, its loop variables split and merged, and judged.
#include "passes/nest/group_program.h"

#include "passes/nest/dot_axes.h"
#include "passes/nest/dot_frames.h"
#include "passes/nest/loop_variables.h"
#include "passes/nest/pages.h"
#include "passes/nest/statistics.h"
#include "passes/nest/walk_group.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;
using ir::OpClass;

using tile::Monoid;

tile::Number identity(Monoid monoid, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double value = 0;
  switch (monoid) {
    case Monoid::prod:
    case Monoid::logical_and:
      value = 1;
      break;
    case Monoid::max:
    case Monoid::argmax:
      value = -kInfinity;
      break;
    case Monoid::min:
    case Monoid::argmin:
      value = kInfinity;
      break;
    default:
      break;
  }
  if (is_float(dtype)) return {value, 0};
  return {0, float_to_int(dtype, value)};  // infinities become the type's limits
}

bool is_inlined(const Node& node) {
  switch (node.op->kind) {
    case OpClass::constant:
    case OpClass::iota:
    case OpClass::reshape:
    case OpClass::transpose:
    case OpClass::expand:
    case OpClass::slice:
    case OpClass::pad:
    case OpClass::concat:
      return true;
    default:
      return false;
  }
}

NodeId storage_node(const ir::Graph& graph, NodeId id) {
  while (graph.node(id).op->kind == OpClass::reshape) id = graph.node(id).operands[0];
  return id;
}

int GroupProgram::levels() const {
  int most = 0;
  for (const Sym& s : syms) most = std::max(most, s.level);
  return most;
}

// Operands stand before their users.
std::vector<bool> GroupProgram::made_of(const std::vector<int>& of) const {
  std::vector<bool> found(syms.size());
  for (int s : of) found[static_cast<std::size_t>(s)] = true;
  for (std::size_t s = syms.size(); s-- > 0;) {
    if (!found[s]) continue;
    for (int o : syms[s].operands) found[static_cast<std::size_t>(o)] = true;
    for (auto [o, stride] : syms[s].dynamic) found[static_cast<std::size_t>(o)] = true;
    if (syms[s].mask >= 0) found[static_cast<std::size_t>(syms[s].mask)] = true;
  }
  return found;
}

bool GroupProgram::is_outer_dot(int sym) const {
  const Sym& s = syms[static_cast<std::size_t>(sym)];
  return s.kind == Sym::Kind::dot && !s.inner;
}

std::vector<int> GroupProgram::outer_dots() const {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(syms.size()); ++s)
    if (is_outer_dot(s)) out.push_back(s);
  return out;
}

int GroupProgram::dot() const {
  const std::vector<int> all = outer_dots();
  return all.empty() ? -1 : all.front();
}

bool GroupProgram::is_chain() const {
  return has_inner_dots() || (dot() >= 0 && (levels() > 1 || outer_dots().size() > 1));
}

bool GroupProgram::has_inner_dots() const {
  return std::any_of(syms.begin(), syms.end(), [](const Sym& s) { return s.inner; });
}

bool GroupProgram::has_dots() const {
  return std::any_of(syms.begin(), syms.end(), [](const Sym& s) { return s.kind == Sym::Kind::dot; });
}

bool GroupProgram::adds_up_dots() const {
  return std::any_of(syms.begin(), syms.end(), [](const Sym& s) { return s.adds_up; });
}

std::vector<int> GroupProgram::reduced_variables() const {
  std::vector<int> out;
  for (std::size_t v = 0; v < extents.size(); ++v)
    if (reduced[v]) out.push_back(static_cast<int>(v));
  return out;
}

std::vector<int> GroupProgram::parallel_variables() const {
  std::vector<int> out;
  for (std::size_t v = 0; v < extents.size(); ++v)
    if (!reduced[v] && !inner[v]) out.push_back(static_cast<int>(v));
  return out;
}

namespace {

bool needs_one_reduced_loop(const GroupProgram& program) {
  if (program.has_inner_dots() && program.dot() < 0) return true;
  // The place of an extreme is counted along one variable.
  for (const Sym& s : program.syms)
    if (s.kind == Sym::Kind::scan || (s.kind == Sym::Kind::reduce &&
                                      (s.monoid == tile::Monoid::argmax || s.monoid == tile::Monoid::argmin)))
      return true;
  if (program.levels() > 1) return true;
  return std::any_of(program.outputs.begin(), program.outputs.end(), [&](const ProgramOutput& o) {
    return program.levels() > 0 && program.syms[static_cast<std::size_t>(o.sym)].reduced;
  });
}

// One loop adds up what is computed of products, each of a whole block of the result: nothing else is left of
// a round, and no other dot streams by.
bool only_adds_up(const GroupProgram& program) {
  if (program.dot() >= 0 || program.levels() != 1) return false;
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || axes.n < 0) return false;  // one row or column is no block of a result
  for (const ProgramOutput& o : program.outputs)
    if (program.syms[static_cast<std::size_t>(o.sym)].reduced || o.accumulate) return false;
  return std::all_of(program.syms.begin(), program.syms.end(), [](const Sym& s) {
    const bool place = s.monoid == tile::Monoid::argmax || s.monoid == tile::Monoid::argmin;
    return s.kind != Sym::Kind::scan && (s.kind != Sym::Kind::reduce || !place) && (!s.inner || s.adds_up);
  });
}

// Dots inside the loop give blocks of rows × the variable it walks: their first operand stays, their second
// streams by with it. What they give is read by operand a of the dot over that variable.
bool inner_dots_follow_the_loop(const GroupProgram& program) {
  if (!program.has_inner_dots()) return true;
  if (program.reduced_variables().empty()) return false;
  if (program.adds_up_dots()) return only_adds_up(program);
  const std::vector<std::vector<bool>> depends = dependence(program);
  const DotAxes axes = dot_axes(program);
  const auto walks = [&](int sym, int v) {
    return v >= 0 && depends[static_cast<std::size_t>(sym)][static_cast<std::size_t>(v)];
  };
  std::vector<int> columns;
  for (int s : program.outer_dots()) columns.push_back(program.syms[static_cast<std::size_t>(s)].operands[1]);
  const std::vector<bool> streamed = program.made_of(columns);
  for (std::size_t s = 0; s < program.syms.size(); ++s) {
    const Sym& m = program.syms[s];
    if (!m.inner) continue;
    if (streamed[s] || walks(m.operands[0], axes.k) || walks(m.operands[1], axes.m)) return false;
  }
  return true;
}

// Whether a sym is part of what picks a place alone, never of a value.
bool only_picks(const GroupProgram& program, std::size_t sym) {
  std::vector<bool> valued(program.syms.size());
  for (const ProgramOutput& o : program.outputs) valued[static_cast<std::size_t>(o.sym)] = true;
  for (std::size_t s = program.syms.size(); s-- > 0;)
    if (valued[s])
      for (int o : program.syms[s].operands) valued[static_cast<std::size_t>(o)] = true;
  return !valued[sym];
}

// A dot's operands are tiles: blocks of memory, and arithmetic on them.
bool has_plain_operands(const GroupProgram& program) {
  std::vector<int> operands;
  for (const Sym& s : program.syms) {
    if (s.kind != Sym::Kind::dot) continue;
    // What a loop has reduced stands in the frame of its rows, which only operand a of its own dot shares.
    const auto level = [&](std::size_t side) {
      return program.syms[static_cast<std::size_t>(s.operands[side])].level;
    };
    if (level(1) > 0 || (s.inner && level(0) > 0)) return false;
    operands.insert(operands.end(), s.operands.begin(), s.operands.end());
  }
  std::vector<bool> needed = program.made_of(operands);
  for (std::size_t i = needed.size(); i-- > 0;) {
    const Sym& s = program.syms[i];
    if (!needed[i] || s.kind != Sym::Kind::load) continue;
    if (pages_of(program, s)) {  // what says where they are is a scalar, however it is made
      for (std::size_t part = 0; part < i; ++part) needed[part] = needed[part] && !only_picks(program, part);
      continue;
    }
    const bool whole = s.dynamic.empty() && s.mask < 0;
    if (!s.offset.is_affine() || (!whole && !picks_a_block(program, s))) return false;
  }
  return true;
}

// A load of rows × depth or depth × columns, as the loop walks them.
bool is_streamed_block(const GroupProgram& program, const Sym& load, const DotAxes& axes) {
  if (load.kind != Sym::Kind::load || !load.reduced) return false;
  for (int v = 0; v < static_cast<int>(program.extents.size()); ++v)
    if (load.offset.depends_on(v) &&
        (v == axes.m || v == axes.n || program.inner[static_cast<std::size_t>(v)]))
      return true;
  return false;
}

// Several dots of one loop: rows of the first are rows of all, and each shares a block that the loop walks
// with the first. Where nothing is computed in the loop, every result must be made of all of them: products
// of one operand that go their own ways are as fast apart, each with tiles of its own.
bool dots_share_the_loop(const GroupProgram& program) {
  const std::vector<int> dots = program.outer_dots();
  if (dots.size() < 2) return true;
  if (!program.has_inner_dots())
    for (const ProgramOutput& o : program.outputs) {
      const std::vector<bool> parts = program.made_of({o.sym});
      for (int dot : dots)
        if (!parts[static_cast<std::size_t>(dot)]) return false;
    }
  const std::vector<std::vector<bool>> depends = dependence(program);
  const DotAxes axes = dot_axes(program);
  const auto walks = [&](int sym, int v) {
    return v >= 0 && depends[static_cast<std::size_t>(sym)][static_cast<std::size_t>(v)];
  };
  const std::vector<bool> first =
      program.made_of(program.syms[static_cast<std::size_t>(dots.front())].operands);
  return std::all_of(dots.begin() + 1, dots.end(), [&](int dot) {
    const std::vector<int>& sides = program.syms[static_cast<std::size_t>(dot)].operands;
    if (walks(sides[0], axes.n) || walks(sides[1], axes.m)) return false;
    const std::vector<bool> mine = program.made_of(sides);
    for (int other : dots)
      if (mine[static_cast<std::size_t>(other)]) return false;  // done before this one begins
    for (std::size_t s = 0; s < mine.size(); ++s)
      if (mine[s] && first[s] && is_streamed_block(program, program.syms[s], axes)) return true;
    return false;
  });
}

// What a dot's loop reduces beside it stands in the frame of its rows, which knows no columns.
bool reduces_along_rows(const GroupProgram& program) {
  if (program.dot() < 0) return true;
  const int columns = dot_axes(program).n;
  if (columns < 0) return true;
  const std::vector<std::vector<bool>> depends = dependence(program);
  for (std::size_t s = 0; s < depends.size(); ++s)
    if (program.syms[s].kind == Sym::Kind::reduce && depends[s][static_cast<std::size_t>(columns)])
      return false;
  return true;
}

// What is computed on the way to a matrix unit stands in registers, where only operand a may be: of all that
// is added up, rows and columns change places together.
void turn_added_dots(GroupProgram& program) {
  if (!program.adds_up_dots()) return;
  const auto is_computed = [&](int sym) {
    return program.syms[static_cast<std::size_t>(sym)].kind != Sym::Kind::load;
  };
  bool computed_b = false;
  for (const Sym& s : program.syms) {
    if (!s.inner) continue;
    if (is_computed(s.operands[0])) return;
    computed_b = computed_b || is_computed(s.operands[1]);
  }
  if (!computed_b) return;
  exchange_added_dots(program);
  program.turned = true;
}

bool has_divisions(const GroupProgram& program) {
  const auto divides = [](const auto& of) { return of.offset.divisions() != 0; };
  return std::any_of(program.syms.begin(), program.syms.end(), divides) ||
         std::any_of(program.outputs.begin(), program.outputs.end(), divides);
}

}  // namespace

namespace {

std::variant<GroupProgram, Refusal> build_program(const ir::Graph& graph, const Group& group,
                                                  Reductions reductions) {
  try {
    const GroupProgram walked = walk_group(graph, group, reductions);
    const bool dots = walked.has_dots(), may_split = has_divisions(walked);
    for (const SplitReduced split : {SplitReduced::yes, SplitReduced::no}) {
      if (split == SplitReduced::no && !may_split) break;  // nothing was split
      GroupProgram program = walked;
      split_variables(program, split);
      merge_variables(program);
      if (!fits_frames(program)) continue;
      turn_added_dots(program);
      if (!has_plain_operands(program) || !reduces_along_rows(program) ||
          !inner_dots_follow_the_loop(program) || !dots_share_the_loop(program) ||
          !can_leave_statistics(program))
        continue;
      if (program.reduced_variables().size() <= 1 || !needs_one_reduced_loop(program)) return program;
    }
    return dots ? Refusal::dot_operand_not_plain : Refusal::several_reduced_loops;
  } catch (const Stop& stop) {
    return stop.refusal;
  }
}

// Whether something as large as the last matmul's result is stored: a loop of reductions that computes the
// product would compute it once more for that.
bool stores_product(const ir::Graph& graph, const Group& group, const LastMatmul& last) {
  return std::any_of(group.outputs.begin(), group.outputs.end(), [&](NodeId o) {
    return last.results.count(o) && graph.type(o).shape.size() >= graph.type(last.id).shape.size();
  });
}

}  // namespace

std::variant<GroupProgram, Refusal> build_program(const ir::Graph& graph, const Group& group) {
  const LastMatmul last = last_matmul(graph, group);
  if (!group.statistics || last.reductions.empty()) return build_program(graph, group, Reductions::loops);
  auto statistics = [&] { return build_program(graph, group, Reductions::statistics); };
  auto loops = [&] { return build_program(graph, group, Reductions::loops); };
  if (stores_product(graph, group, last)) {
    auto built = statistics();
    return std::holds_alternative<GroupProgram>(built) ? built : loops();
  }
  auto built = loops();
  if (std::holds_alternative<GroupProgram>(built)) return built;
  auto other = statistics();
  return std::holds_alternative<GroupProgram>(other) ? other : built;
}

std::string to_string(const ir::Graph& graph, const GroupProgram& program) {
  constexpr std::string_view kinds[] = {"load",     "index", "constant", "op",  "cast",    "reduce",   "scan",
                                        "in_range", "where", "random",   "dot", "product", "statistic"};
  std::string out = fmt::format("space [{}]", fmt::join(program.extents, ","));
  for (int v : program.reduced_variables()) out += fmt::format(" i{} reduced", v);
  out += "\n";
  for (std::size_t i = 0; i < program.syms.size(); ++i) {
    const Sym& s = program.syms[i];
    out += fmt::format("  #{} = {}", i, kinds[static_cast<std::size_t>(s.kind)]);
    if (s.kind == Sym::Kind::op) out += fmt::format(" {}", graph.node(s.node).op->name);
    if (s.kind == Sym::Kind::load) out += fmt::format(" %{}", s.node);
    for (int o : s.operands) out += fmt::format(" #{}", o);
    if (s.kind == Sym::Kind::load || s.kind == Sym::Kind::index || s.kind == Sym::Kind::random ||
        s.kind == Sym::Kind::in_range)
      out += fmt::format(" [{}]", to_string(s.offset));
    for (auto [o, stride] : s.dynamic) out += fmt::format(" +{}*#{}", stride, o);
    if (s.mask >= 0) out += fmt::format(" if #{}", s.mask);
    out += fmt::format(" : {}\n", tilewright::name(s.dtype));
  }
  for (const ProgramOutput& o : program.outputs)
    out += fmt::format("  %{}[{}] = #{}\n", o.node, to_string(o.offset), o.sym);
  return out;
}

}  // namespace tilewright::passes
