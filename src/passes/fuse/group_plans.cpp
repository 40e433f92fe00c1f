// Builds a group's program, has it cut into tiles, written and priced.
#include "passes/fuse/group_plans.h"

#include "passes/tiling/dot_shapes.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <map>
#include <optional>
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

// Predicted seconds of a group's kernels, one after another, and of the zeros that they add to.
double predicted_s(const Graph& graph, const Lowered& lowered, const tile::Target& target) {
  double seconds = 0;
  for (const EmittedKernel& k : lowered.kernels) seconds += target.predicted_us(k.kernel, target) * 1e-6;
  const auto zero = [&](double bytes) { seconds += target.launch_s + bytes / target.memory_bytes_per_s; };
  for (const NodeId id : lowered.zeroed) zero(bytes_of(graph.type(id)));
  for (const int t : lowered.zeroed_temporaries) {
    const Temporary& zeros = lowered.temporaries[static_cast<std::size_t>(t)];
    zero(static_cast<double>(zeros.elements) * static_cast<double>(size_bytes(zeros.dtype)));
  }
  return seconds;
}

// Tiles other than the first are taken where they are predicted to be faster by this much: prices of one
// kernel that are nearer than this say nothing (docs/notes/2026-11-26-rounds-of-attention.md).
constexpr double kSurelyFaster = 0.97;

// A name for all of a plan's kernels, which are named where they are taken.
constexpr std::string_view kUnnamed = "group";

void name_kernels(Lowered& lowered, const std::string& name) {
  for (EmittedKernel& k : lowered.kernels) k.kernel.name.replace(0, kUnnamed.size(), name);
}

}  // namespace

std::variant<TiledGroup, Refusal> GroupPlans::tiled(const Graph& graph, const Group& group,
                                                    GroupWork& work) const {
  auto built = build_loop_nest(graph, group);
  ++work.programs;
  if (const auto* refusal = std::get_if<Refusal>(&built)) {
    work.exprs += group.nodes.size();
    return *refusal;
  }
  LoopNest& nest = std::get<LoopNest>(built);
  work.exprs += nest.exprs.size();
  Refusal refusal = judged(nest, target_);
  if (refusal != Refusal::none) return refusal;
  TiledGroup tiled = tile_group(graph, std::move(nest), target_);
  if (tiled.nest.held && tiled.tiles.looped) return Refusal::several_reduced_loops;
  return tiled;
}

void GroupPlans::write(const Graph& graph, const GroupForm& form, const TiledGroup& tiled, Known& known) {
  Plan plan{form, tiled.cost, lower(graph, tiled, target_, {.name = std::string(kUnnamed)})};
  known.price.seconds =
      target_.predicted_us != nullptr ? predicted_s(graph, plan.lowered, target_) : known.price.floor_s;
  known.has_dots = tiled.nest.has_dots();
  kept_ += form.nodes.size();
  if (kept_ <= kMostKept) known.plan = std::make_unique<const Plan>(std::move(plan));
}

GroupPlans::Known& GroupPlans::known(const Graph& graph, GroupForms& forms, const Group& group,
                                     Needed needed) {
  const auto [place, is_new] = known_.try_emplace(forms.price_key_of(group));
  Known& known = place->second;
  const bool is_done = known.is_written || needed == Needed::floor || known.price.refusal != Refusal::none;
  if (!is_new && is_done) return known;
  GroupWork again;  // is not counted
  try {
    const auto tiled = this->tiled(graph, group, is_new ? work_ : again);
    if (const auto* refusal = std::get_if<Refusal>(&tiled)) {
      known.price = {.refusal = *refusal};
      return known;
    }
    const GroupCost& cost = std::get<TiledGroup>(tiled).cost;
    known.price.floor_s = cost.seconds(target_);
    known.price.bytes = cost.bytes;
    if (needed == Needed::floor) return known;
    write(graph, forms.of(group), std::get<TiledGroup>(tiled), known);
    known.is_written = true;
  } catch (const Error& error) {
    known.price = {.refusal = Refusal::not_written_for(error.what())};
  }
  return known;
}

GroupPrice GroupPlans::floor(const Graph& graph, GroupForms& forms, const Group& group) {
  ++work_.asked;
  return known(graph, forms, group, Needed::floor).price;
}

GroupPrice GroupPlans::price(const Graph& graph, GroupForms& forms, const Group& group) {
  ++work_.asked;
  return known(graph, forms, group, Needed::kernels).price;
}

double GroupPlans::seconds_beside(const Graph& graph, GroupForms& forms, const Group& group, double bytes) {
  Known& known = this->known(graph, forms, group, Needed::kernels);
  const double rate = target_.bytes_per_s(bytes);
  if (rate == target_.bytes_per_s(known.price.bytes) || !known.plan || target_.predicted_us == nullptr)
    return known.price.seconds;
  const auto [place, is_new] = known.beside_s.try_emplace(rate, known.price.seconds);
  if (is_new) {
    tile::Target beside = target_;
    beside.beside_bytes = bytes;
    for (const EmittedKernel& k : known.plan->lowered.kernels)
      place->second +=
          1e-6 * (target_.predicted_us(k.kernel, beside) - target_.predicted_us(k.kernel, target_));
  }
  return place->second;
}

PlannedGroup GroupPlans::write_fastest(const Graph& graph, const LoopNest& nest,
                                       const LowerOptions& options) const {
  if (target_.predicted_us == nullptr) {
    const TiledGroup tiled = tile_group(graph, nest, target_);
    return {tiled.cost, lower(graph, tiled, target_, options)};
  }
  std::optional<PlannedGroup> best;
  double least_s = 0;
  for (const TiledGroup& tiled : tile_group_by_all(graph, nest, target_)) {
    Lowered lowered = lower(graph, tiled, target_, options);
    const double seconds = predicted_s(graph, lowered, target_);
    if (best && seconds >= least_s) continue;
    least_s = best ? seconds : kSurelyFaster * seconds;
    best = PlannedGroup{tiled.cost, std::move(lowered)};
  }
  return std::move(*best);
}

std::variant<PlannedGroup, Refusal> GroupPlans::plan(const Graph& graph, GroupForms& forms,
                                                     const Group& group, const LowerOptions& options) {
  Known& known = this->known(graph, forms, group, Needed::kernels);
  const GroupForm form = forms.of(group);
  if (known.plan && known.plan->form.key == form.key && !options.variants) {
    if (known.has_dots && !known.is_fastest) {
      const LoopNest nest = std::get<LoopNest>(build_loop_nest(graph, group));
      PlannedGroup fastest = write_fastest(graph, nest, {.name = std::string(kUnnamed)});
      if (target_.predicted_us) known.price.seconds = predicted_s(graph, fastest.lowered, target_);
      known.plan = std::make_unique<const Plan>(Plan{form, fastest.cost, std::move(fastest.lowered)});
      known.is_fastest = true;
      known.beside_s.clear();  // of the plan before
    }
    PlannedGroup out{known.plan->cost, known.plan->lowered};
    rename_nodes(out.lowered, known.plan->form.nodes, form.nodes);
    name_kernels(out.lowered, options.name);
    return out;
  }
  // A group whose random keys are of other numbers; or one not worth taking, but taken where there is nothing
  // else: a node by itself.
  auto built = build_loop_nest(graph, group);
  if (const auto* refusal = std::get_if<Refusal>(&built)) return *refusal;
  return write_fastest(graph, std::get<LoopNest>(built), options);
}

}  // namespace tilewright::passes
