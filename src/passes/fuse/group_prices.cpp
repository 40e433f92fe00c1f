// Builds a group's program, asks the cost model.
#include "passes/fuse/group_prices.h"

#include "passes/nest/tile_shape.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/group_cost.h"

#include <set>

namespace tilewright::passes {

namespace {

// Several sums of a loop that only multiplies are as fast as one product each where their narrower tiles
// stand in the registers of tensor cores and are enough for all units.
bool fills_tensor_cores(const GroupProgram& program, const tile::Target& target) {
  return chains_on_tensor_cores(program, target) &&
         program_count(program, choose_dot_shape(program, target)) >= target.units;
}

}  // namespace

GroupPrice GroupPrices::made(const ir::Graph& graph, const Group& group) {
  auto built = build_program(graph, group);
  ++work_.programs;
  if (const auto* refusal = std::get_if<Refusal>(&built)) {
    work_.syms += group.nodes.size();
    return {.refusal = *refusal};
  }
  const GroupProgram& program = std::get<GroupProgram>(built);
  work_.syms += program.syms.size();
  if (program.outer_dots().size() > 1 && !program.has_inner_dots() && !fills_tensor_cores(program, target_))
    return {.refusal = Refusal::no_time_saved};
  std::set<ir::NodeId> views;
  for (const Sym& s : program.syms)
    if (s.kind == Sym::Kind::load) views.insert(s.node);
  if (views.size() + program.outputs.size() > kMaxViews) return {.refusal = Refusal::too_many_operands};
  return {.seconds = group_cost(graph, program, target_).seconds(target_)};
}

const GroupPrice& GroupPrices::of(const ir::Graph& graph, GroupForms& forms, const Group& group) {
  ++work_.asked;
  const Hash128 key = forms.key_of(group);
  auto known = known_.find(key);
  if (known == known_.end()) known = known_.emplace(key, made(graph, group)).first;
  return known->second;
}

}  // namespace tilewright::passes
