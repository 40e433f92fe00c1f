// Builds a group's program, has it cut into tiles and priced.
#include "passes/fuse/group_plans.h"

#include "passes/tiling/dot_shapes.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

namespace {

// Plans of so many exprs are kept, some 50 MB: a training step of GPT-2 has 60 thousand. Of a program that is
// so long that nothing repeats in, those that are taken are made once more.
constexpr std::size_t kMostKept = 100000;

// Several sums of a loop that only multiplies are as fast as one product each where their narrower tiles
// stand in registers and are enough for all units.
bool fills_matrix_unit(const LoopNest& nest, const tile::Target& target) {
  return b2b_on_matrix_unit(nest, target) &&
         program_count(nest, choose_dot_shape(nest, target)) >= target.units;
}

// Why a group of a legal program is worth nothing.
Refusal judged(const LoopNest& nest, const tile::Target& target) {
  if (nest.outer_dots().size() > 1 && !nest.has_inner_dots() && !fills_matrix_unit(nest, target))
    return Refusal::no_time_saved;
  std::set<NodeId> views;
  for (const Expr& s : nest.exprs)
    if (s.kind == Expr::Kind::load) views.insert(s.node);
  return views.size() + nest.outputs.size() > kMaxViews ? Refusal::too_many_operands : Refusal::none;
}

TiledGroup renamed(TiledGroup group, const std::vector<NodeId>& from, const std::vector<NodeId>& to) {
  std::map<NodeId, NodeId> names;
  for (std::size_t i = 0; i < from.size(); ++i) names[from[i]] = to[i];
  for (Expr& s : group.nest.exprs)
    if (s.node >= 0) s.node = names.at(s.node);
  for (ProgramOutput& o : group.nest.outputs)
    if (o.node >= 0) o.node = names.at(o.node);
  return group;
}

}  // namespace

GroupPlans::Known GroupPlans::made(const Graph& graph, const GroupForm& form, const Group& group) {
  auto built = build_loop_nest(graph, group);
  ++work_.programs;
  if (const auto* refusal = std::get_if<Refusal>(&built)) {
    work_.exprs += group.nodes.size();
    return {.price = {.refusal = *refusal}};
  }
  LoopNest& nest = std::get<LoopNest>(built);
  work_.exprs += nest.exprs.size();
  const Refusal refusal = judged(nest, target_);
  if (refusal != Refusal::none) return {.price = {.refusal = refusal}};
  Plan plan{form, tile_group(graph, std::move(nest), target_)};
  return {.price = {.seconds = plan.tiled.cost.seconds(target_)},
          .plan = std::make_unique<const Plan>(std::move(plan))};
}

const GroupPlans::Known& GroupPlans::known(const Graph& graph, GroupForms& forms, const Group& group) {
  const Hash128 key = forms.key_of(group);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  Known made = this->made(graph, forms.of(group), group);
  if (made.plan) kept_ += made.plan->tiled.nest.exprs.size();
  if (kept_ > kMostKept) made.plan = nullptr;
  return known_.emplace(key, std::move(made)).first->second;
}

GroupPrice GroupPlans::price(const Graph& graph, GroupForms& forms, const Group& group) {
  ++work_.asked;
  return known(graph, forms, group).price;
}

std::variant<TiledGroup, Refusal> GroupPlans::plan(const Graph& graph, GroupForms& forms,
                                                   const Group& group) {
  const Known& known = this->known(graph, forms, group);
  if (known.plan) return renamed(known.plan->tiled, known.plan->form.nodes, forms.of(group).nodes);
  // Not worth taking, but taken where there is nothing else: a node by itself.
  auto built = build_loop_nest(graph, group);
  if (const auto* refusal = std::get_if<Refusal>(&built)) return *refusal;
  return tile_group(graph, std::move(std::get<LoopNest>(built)), target_);
}

}  // namespace tilewright::passes
