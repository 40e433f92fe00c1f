// A group's program: walked, its loop variables split and merged, and judged.
#include "passes/nest/loop_nest.h"

#include "passes/nest/dot_axes.h"
#include "passes/nest/dot_frames.h"
#include "passes/nest/epilogue_reductions.h"
#include "passes/nest/loop_variables.h"
#include "passes/nest/pages.h"
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

int LoopNest::levels() const {
  int most = 0;
  for (const Expr& s : exprs) most = std::max(most, s.level);
  return most;
}

// Operands stand before their users.
std::vector<bool> LoopNest::made_of(const std::vector<int>& of) const {
  std::vector<bool> found(exprs.size());
  for (int s : of) found[static_cast<std::size_t>(s)] = true;
  for (std::size_t s = exprs.size(); s-- > 0;) {
    if (!found[s]) continue;
    for (int o : exprs[s].operands) found[static_cast<std::size_t>(o)] = true;
    for (auto [o, stride] : exprs[s].dynamic) found[static_cast<std::size_t>(o)] = true;
    if (exprs[s].mask >= 0) found[static_cast<std::size_t>(exprs[s].mask)] = true;
  }
  return found;
}

bool LoopNest::is_outer_dot(int expr) const {
  const Expr& s = exprs[static_cast<std::size_t>(expr)];
  return s.kind == Expr::Kind::dot && !s.inner;
}

std::vector<int> LoopNest::outer_dots() const {
  std::vector<int> out;
  for (int s = 0; s < static_cast<int>(exprs.size()); ++s)
    if (is_outer_dot(s)) out.push_back(s);
  return out;
}

int LoopNest::dot() const {
  const std::vector<int> all = outer_dots();
  return all.empty() ? -1 : all.front();
}

bool LoopNest::is_b2b() const {
  return has_inner_dots() || (dot() >= 0 && (levels() > 1 || outer_dots().size() > 1));
}

bool LoopNest::has_inner_dots() const {
  return std::any_of(exprs.begin(), exprs.end(), [](const Expr& s) { return s.inner; });
}

bool LoopNest::has_dots() const {
  return std::any_of(exprs.begin(), exprs.end(), [](const Expr& s) { return s.kind == Expr::Kind::dot; });
}

bool LoopNest::accumulates_scaled() const {
  return std::any_of(exprs.begin(), exprs.end(), [](const Expr& s) { return s.scaled_accumulation; });
}

std::vector<int> LoopNest::reduced_variables() const {
  std::vector<int> out;
  for (std::size_t v = 0; v < extents.size(); ++v)
    if (reduced[v]) out.push_back(static_cast<int>(v));
  return out;
}

std::vector<int> LoopNest::parallel_variables() const {
  std::vector<int> out;
  for (std::size_t v = 0; v < extents.size(); ++v)
    if (!reduced[v] && !inner[v]) out.push_back(static_cast<int>(v));
  return out;
}

bool LoopNest::stores_reduced_values() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const ProgramOutput& o) { return exprs[static_cast<std::size_t>(o.expr)].reduced; });
}

bool LoopNest::is_stored_along_reduced(const ProgramOutput& output) const {
  if (exprs[static_cast<std::size_t>(output.expr)].reduced) return true;
  const std::vector<int> walked = reduced_variables();
  return std::any_of(walked.begin(), walked.end(), [&](int v) { return output.offset.depends_on(v); });
}

double touched(const IndexExpr& offset, const LoopNest& nest) {
  double elements = 1;
  for (std::size_t v = 0; v < nest.extents.size(); ++v)
    if (offset.depends_on(static_cast<int>(v))) elements *= static_cast<double>(nest.extents[v]);
  return elements;
}

bool LoopNest::is_empty() const { return std::find(extents.begin(), extents.end(), 0) != extents.end(); }

bool LoopNest::stores_along_reduced() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const ProgramOutput& o) { return is_stored_along_reduced(o); });
}

bool LoopNest::carries_scans() const {
  bool any = false;
  for (const Expr& e : exprs) {
    if (e.kind == Expr::Kind::argsort) return false;
    any = any || e.kind == Expr::Kind::scan;
    if (e.kind != Expr::Kind::reduce) continue;
    const std::vector<bool> parts = made_of(e.operands);
    for (std::size_t s = 0; s < exprs.size(); ++s)
      if (parts[s] && exprs[s].kind == Expr::Kind::scan) return false;
  }
  return any;
}

namespace {

bool needs_one_reduced_loop(const LoopNest& nest) {
  if (nest.has_inner_dots() && nest.dot() < 0) return true;
  // The place of an extreme is counted along one variable.
  for (const Expr& s : nest.exprs)
    if (takes_whole_row(s) || (s.kind == Expr::Kind::reduce && finds_place(s.monoid))) return true;
  return nest.levels() > 1 || (nest.levels() > 0 && nest.stores_reduced_values());
}

// Whether it wants neither a whole row nor the place of an extreme.
bool is_of_any_part(const Expr& s) {
  return !takes_whole_row(s) && (s.kind != Expr::Kind::reduce || !finds_place(s.monoid));
}

// A tile has two axes, and what is not commutative is not reduced over both.
bool can_be_held(const LoopNest& nest) {
  return nest.reduced_variables().size() == 2 && !nest.has_dots() &&
         std::all_of(nest.exprs.begin(), nest.exprs.end(), is_of_any_part);
}

// One loop adds up what is computed of products, each of a whole block of the result: nothing else is left of
// a round, and no other dot streams by.
bool only_accumulates_scaled(const LoopNest& nest) {
  if (nest.dot() >= 0 || nest.levels() != 1) return false;
  const DotAxes axes = dot_axes(nest);
  if (axes.m < 0 || axes.n < 0) return false;  // one row or column is no block of a result
  for (const ProgramOutput& o : nest.outputs)
    if (nest.is_stored_along_reduced(o) || o.accumulate) return false;
  return std::all_of(nest.exprs.begin(), nest.exprs.end(),
                     [](const Expr& s) { return is_of_any_part(s) && (!s.inner || s.scaled_accumulation); });
}

// Dots inside the loop give blocks of rows × the variable it walks: their first operand stays, their second
// streams by with it. What they give is read by operand a of the dot over that variable.
bool inner_dots_follow_the_loop(const LoopNest& nest) {
  if (!nest.has_inner_dots()) return true;
  if (nest.reduced_variables().empty()) return false;
  if (nest.accumulates_scaled()) return only_accumulates_scaled(nest);
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const DotAxes axes = dot_axes(nest);
  const auto walks = [&](int expr, int v) {
    return v >= 0 && depends[static_cast<std::size_t>(expr)][static_cast<std::size_t>(v)];
  };
  std::vector<int> columns;
  for (int s : nest.outer_dots()) columns.push_back(nest.exprs[static_cast<std::size_t>(s)].operands[1]);
  const std::vector<bool> streamed = nest.made_of(columns);
  for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
    const Expr& m = nest.exprs[s];
    if (!m.inner) continue;
    if (streamed[s] || walks(m.operands[0], axes.k) || walks(m.operands[1], axes.m)) return false;
  }
  return true;
}

// Whether an expr is part of what picks a place alone, never of a value.
bool only_picks(const LoopNest& nest, std::size_t expr) {
  std::vector<bool> valued(nest.exprs.size());
  for (const ProgramOutput& o : nest.outputs) valued[static_cast<std::size_t>(o.expr)] = true;
  for (std::size_t s = nest.exprs.size(); s-- > 0;)
    if (valued[s])
      for (int o : nest.exprs[s].operands) valued[static_cast<std::size_t>(o)] = true;
  return !valued[expr];
}

// A dot's operands are tiles: blocks of memory, and arithmetic on them.
bool has_plain_operands(const LoopNest& nest) {
  std::vector<int> operands;
  for (const Expr& s : nest.exprs) {
    if (s.kind != Expr::Kind::dot) continue;
    // What a loop has reduced stands in the frame of its rows, which only operand a of its own dot shares.
    const auto level = [&](std::size_t side) {
      return nest.exprs[static_cast<std::size_t>(s.operands[side])].level;
    };
    if (level(1) > 0 || (s.inner && level(0) > 0)) return false;
    operands.insert(operands.end(), s.operands.begin(), s.operands.end());
  }
  std::vector<bool> needed = nest.made_of(operands);
  for (std::size_t i = needed.size(); i-- > 0;) {
    const Expr& s = nest.exprs[i];
    if (!needed[i] || s.kind != Expr::Kind::load) continue;
    if (pages_of(nest, s)) {  // what says where they are is a scalar, however it is made
      for (std::size_t part = 0; part < i; ++part) needed[part] = needed[part] && !only_picks(nest, part);
      continue;
    }
    const bool whole = s.dynamic.empty() && s.mask < 0;
    if (!s.offset.is_affine() || (!whole && !picks_a_block(nest, s))) return false;
  }
  return true;
}

// A load of rows × depth or depth × columns, as the loop walks them.
bool is_streamed_block(const LoopNest& nest, const Expr& load, const DotAxes& axes) {
  if (load.kind != Expr::Kind::load || !load.reduced) return false;
  for (int v = 0; v < static_cast<int>(nest.extents.size()); ++v)
    if (load.offset.depends_on(v) && (v == axes.m || v == axes.n || nest.inner[static_cast<std::size_t>(v)]))
      return true;
  return false;
}

// Several dots of one loop: rows of the first are rows of all, and each shares a block that the loop walks
// with the first. Where nothing is computed in the loop, every result must be made of all of them: products
// of one operand that go their own ways are as fast apart, each with tiles of its own.
bool dots_share_the_loop(const LoopNest& nest) {
  const std::vector<int> dots = nest.outer_dots();
  if (dots.size() < 2) return true;
  if (!nest.has_inner_dots())
    for (const ProgramOutput& o : nest.outputs) {
      const std::vector<bool> parts = nest.made_of({o.expr});
      for (int dot : dots)
        if (!parts[static_cast<std::size_t>(dot)]) return false;
    }
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const DotAxes axes = dot_axes(nest);
  const auto walks = [&](int expr, int v) {
    return v >= 0 && depends[static_cast<std::size_t>(expr)][static_cast<std::size_t>(v)];
  };
  const std::vector<bool> first = nest.made_of(nest.exprs[static_cast<std::size_t>(dots.front())].operands);
  return std::all_of(dots.begin() + 1, dots.end(), [&](int dot) {
    const std::vector<int>& sides = nest.exprs[static_cast<std::size_t>(dot)].operands;
    if (walks(sides[0], axes.n) || walks(sides[1], axes.m)) return false;
    const std::vector<bool> mine = nest.made_of(sides);
    for (int other : dots)
      if (mine[static_cast<std::size_t>(other)]) return false;  // done before this one begins
    for (std::size_t s = 0; s < mine.size(); ++s)
      if (mine[s] && first[s] && is_streamed_block(nest, nest.exprs[s], axes)) return true;
    return false;
  });
}

// What a dot's loop reduces beside it stands in the frame of its rows, which knows no columns.
bool reduces_along_rows(const LoopNest& nest) {
  if (nest.dot() < 0) return true;
  const int columns = dot_axes(nest).n;
  if (columns < 0) return true;
  const std::vector<std::vector<bool>> depends = dependence(nest);
  for (std::size_t s = 0; s < depends.size(); ++s)
    if (nest.exprs[s].kind == Expr::Kind::reduce && depends[s][static_cast<std::size_t>(columns)])
      return false;
  return true;
}

// What is computed on the way to a matrix unit stands in registers, where only operand a may be: of all that
// is added up, rows and columns change places together.
void turn_added_dots(LoopNest& nest) {
  if (!nest.accumulates_scaled()) return;
  const auto is_computed = [&](int expr) {
    return nest.exprs[static_cast<std::size_t>(expr)].kind != Expr::Kind::load;
  };
  bool computed_b = false;
  for (const Expr& s : nest.exprs) {
    if (!s.inner) continue;
    if (is_computed(s.operands[0])) return;
    computed_b = computed_b || is_computed(s.operands[1]);
  }
  if (!computed_b) return;
  exchange_added_dots(nest);
  nest.transposed = true;
}

bool has_divisions(const LoopNest& nest) {
  const auto divides = [](const auto& of) { return of.offset.divisions() != 0; };
  return std::any_of(nest.exprs.begin(), nest.exprs.end(), divides) ||
         std::any_of(nest.outputs.begin(), nest.outputs.end(), divides);
}

}  // namespace

namespace {

// The nest with its variables split and merged, if it can be a kernel; it is `held` if tiles must hold what
// it reduces.
std::optional<LoopNest> judged(LoopNest nest, SplitReduced split) {
  split_k_variables(nest, split);
  merge_variables(nest);
  if (!fits_frames(nest)) return std::nullopt;
  turn_added_dots(nest);
  if (!has_plain_operands(nest) || !reduces_along_rows(nest) || !inner_dots_follow_the_loop(nest) ||
      !dots_share_the_loop(nest) || !can_reduce_in_epilogue(nest))
    return std::nullopt;
  nest.held = nest.reduced_variables().size() > 1 && needs_one_reduced_loop(nest);
  return nest.held && !can_be_held(nest) ? std::nullopt : std::optional(std::move(nest));
}

std::variant<LoopNest, Refusal> build_loop_nest(const ir::Graph& graph, const Group& group,
                                                Reductions reductions) {
  try {
    LoopNest walked = walk_group(graph, group, reductions);
    const bool dots = walked.has_dots(), may_split = has_divisions(walked);
    std::optional<LoopNest> nest;
    if (may_split) nest = judged(walked, SplitReduced::yes);
    if (!nest || nest->held) {
      std::optional<LoopNest> whole =
          judged(std::move(walked), may_split ? SplitReduced::no : SplitReduced::yes);
      if (whole && (!nest || !whole->held)) nest = std::move(whole);
    }
    if (nest) return std::move(*nest);
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

std::variant<LoopNest, Refusal> build_loop_nest(const ir::Graph& graph, const Group& group) {
  const LastMatmul last = last_matmul(graph, group);
  if (!group.epilogue_reductions || last.reductions.empty())
    return build_loop_nest(graph, group, Reductions::loops);
  auto epilogue_reductions = [&] { return build_loop_nest(graph, group, Reductions::epilogue_reductions); };
  auto loops = [&] { return build_loop_nest(graph, group, Reductions::loops); };
  if (stores_product(graph, group, last)) {
    auto built = epilogue_reductions();
    return std::holds_alternative<LoopNest>(built) ? built : loops();
  }
  auto built = loops();
  if (std::holds_alternative<LoopNest>(built)) return built;
  auto other = epilogue_reductions();
  return std::holds_alternative<LoopNest>(other) ? other : built;
}

void rename(Expr& expr, const std::function<int(int)>& name) {
  for (int& o : expr.operands) o = name(o);
  for (auto& [o, stride] : expr.dynamic) o = name(o);
  if (expr.mask >= 0) expr.mask = name(expr.mask);
}

void rename(ProgramOutput& output, const std::function<int(int)>& name) {
  output.expr = name(output.expr);
  for (auto& [o, stride] : output.dynamic) o = name(o);
  if (output.mask >= 0) output.mask = name(output.mask);
}

std::string to_string(const ir::Graph& graph, const LoopNest& nest) {
  constexpr std::string_view kinds[] = {"load",   "index", "constant", "op",       "cast",
                                        "reduce", "scan",  "argsort",  "in_range", "where",
                                        "random", "dot",   "product",  "clamp",    "epilogue_reduction"};
  std::string out = fmt::format("space [{}]", fmt::join(nest.extents, ","));
  for (int v : nest.reduced_variables()) out += fmt::format(" i{} reduced", v);
  out += "\n";
  for (std::size_t i = 0; i < nest.exprs.size(); ++i) {
    const Expr& s = nest.exprs[i];
    out += fmt::format("  #{} = {}", i, kinds[static_cast<std::size_t>(s.kind)]);
    if (s.kind == Expr::Kind::op) out += fmt::format(" {}", graph.node(s.node).op->name);
    if (s.kind == Expr::Kind::load) out += fmt::format(" %{}", s.node);
    for (int o : s.operands) out += fmt::format(" #{}", o);
    if (s.kind == Expr::Kind::load || s.kind == Expr::Kind::index || s.kind == Expr::Kind::random ||
        s.kind == Expr::Kind::in_range)
      out += fmt::format(" [{}]", to_string(s.offset));
    for (auto [o, stride] : s.dynamic) out += fmt::format(" +{}*#{}", stride, o);
    if (s.mask >= 0) out += fmt::format(" if #{}", s.mask);
    out += fmt::format(" : {}\n", tilewright::name(s.dtype));
  }
  for (const ProgramOutput& o : nest.outputs)
    out += fmt::format("  %{}[{}] = #{}\n", o.node, to_string(o.offset), o.expr);
  return out;
}

}  // namespace tilewright::passes
