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

}  // namespace

void name_kernels(PlannedGroup& group, const std::string& name) {
  for (EmittedKernel& k : group.lowered.kernels) k.kernel.name.replace(0, kUnnamed.size(), name);
}

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

void GroupPlans::write(const Graph& graph, GroupForm form, const TiledGroup& tiled, Known& known) {
  const std::size_t nodes = form.nodes.size();
  Plan plan{std::move(form), tiled.cost, lower(graph, tiled, target_, {.name = std::string(kUnnamed)})};
  known.price.seconds =
      target_.predicted_us != nullptr ? predicted_s(graph, plan.lowered, target_) : known.price.floor_s;
  known.has_dots = tiled.nest.has_dots();
  const std::lock_guard lock(mutex_);
  kept_ += nodes;
  if (kept_ <= kMostKept) known.plan = std::make_unique<const Plan>(std::move(plan));
}

GroupPlans::Known& GroupPlans::entry(const Hash128& price_key) {
  const std::lock_guard lock(mutex_);
  return known_[price_key];
}

void GroupPlans::count(const GroupWork& more) {
  const std::lock_guard lock(mutex_);
  work_.asked += more.asked;
  work_.programs += more.programs;
  work_.exprs += more.exprs;
}

GroupWork GroupPlans::work() const {
  const std::lock_guard lock(mutex_);
  return work_;
}

template <class Form>
void GroupPlans::find_out(const Graph& graph, const Group& group, Needed needed, const Form& form,
                          Known& known) {
  const bool is_new = !std::exchange(known.is_tried, true);
  const bool is_done = known.is_written || needed == Needed::floor || known.price.refusal != Refusal::none;
  if (!is_new && is_done) return;
  GroupWork work;
  try {
    const auto tiled = this->tiled(graph, group, work);
    if (is_new) count(work);
    if (const auto* refusal = std::get_if<Refusal>(&tiled)) {
      known.price = {.refusal = *refusal};
      return;
    }
    const GroupCost& cost = std::get<TiledGroup>(tiled).cost;
    known.price.floor_s = cost.seconds(target_);
    known.price.bytes = cost.bytes;
    if (needed == Needed::floor) return;
    write(graph, form(), std::get<TiledGroup>(tiled), known);
    known.is_written = true;
  } catch (const Error& error) {
    known.price = {.refusal = Refusal::not_written_for(error.what())};
  }
}

GroupPrice GroupPlans::floor(const Graph& graph, GroupForms& forms, const Group& group) {
  count({.asked = 1});
  Known& known = entry(forms.price_key_of(group));
  const std::lock_guard lock(known.mutex);
  find_out(graph, group, Needed::floor, [&] { return forms.of(group); }, known);
  return known.price;
}

GroupPrice GroupPlans::price(const Graph& graph, GroupForms& forms, const Group& group) {
  count({.asked = 1});
  Known& known = entry(forms.price_key_of(group));
  const std::lock_guard lock(known.mutex);
  find_out(graph, group, Needed::kernels, [&] { return forms.of(group); }, known);
  return known.price;
}

double GroupPlans::seconds_beside(const Graph& graph, GroupForms& forms, const Group& group, double bytes) {
  Known& known = entry(forms.price_key_of(group));
  const std::lock_guard lock(known.mutex);
  find_out(graph, group, Needed::kernels, [&] { return forms.of(group); }, known);
  const double rate = target_.bytes_per_s(bytes);
  if (rate == target_.bytes_per_s(known.price.bytes) || !known.is_written || target_.predicted_us == nullptr)
    return known.price.seconds;
  const auto [place, is_new] = known.beside_s.try_emplace(rate, known.price.seconds);
  if (is_new) {
    tile::Target beside = target_;
    beside.beside_bytes = bytes;
    const auto add = [&](const Lowered& lowered) {
      for (const EmittedKernel& k : lowered.kernels)
        place->second +=
            1e-6 * (target_.predicted_us(k.kernel, beside) - target_.predicted_us(k.kernel, target_));
    };
    GroupWork again;  // is not counted
    if (known.plan)
      add(known.plan->lowered);
    else
      add(lower(graph, std::get<TiledGroup>(tiled(graph, group, again)), target_,
                {.name = std::string(kUnnamed)}));
  }
  return place->second;
}

// By the tiles whose kernels are predicted to be fastest; `which` of them that is, where it is known.
PlannedGroup GroupPlans::write_fastest(const Graph& graph, const LoopNest& nest, const LowerOptions& options,
                                       std::optional<std::size_t>& which) const {
  if (target_.predicted_us == nullptr) {
    const TiledGroup tiled = tile_group(graph, nest, target_);
    return {tiled.cost, lower(graph, tiled, target_, options)};
  }
  const std::vector<TiledGroup> all = tile_group_by_all(graph, nest, target_);
  const auto written = [&](std::size_t i) {
    return PlannedGroup{all[i].cost, lower(graph, all[i], target_, options)};
  };
  if (which) return written(*which);
  std::optional<PlannedGroup> best;
  double least_s = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    PlannedGroup next = written(i);
    const double seconds = predicted_s(graph, next.lowered, target_);
    if (best && seconds >= least_s) continue;
    least_s = best ? seconds : kSurelyFaster * seconds;
    best = std::move(next);
    which = i;
  }
  return std::move(*best);
}

// A taken group's kernels, by its own names. Those of groups of one price are the same but for these, and for
// the numbers of their random keys: the fastest tiles of one are those of all.
PlannedGroup GroupPlans::taken(const Graph& graph, const Group& group, Known& known,
                               std::unique_lock<std::mutex>& lock) const {
  const LowerOptions unnamed{.name = std::string(kUnnamed)};
  if (!known.has_dots) {
    lock.unlock();
    GroupWork again;  // is not counted
    const TiledGroup own = std::get<TiledGroup>(tiled(graph, group, again));
    return {own.cost, lower(graph, own, target_, unnamed)};
  }
  const LoopNest nest = std::get<LoopNest>(build_loop_nest(graph, group));
  if (std::optional<std::size_t> which = known.fastest) {
    lock.unlock();
    return write_fastest(graph, nest, unnamed, which);
  }
  PlannedGroup fastest = write_fastest(graph, nest, unnamed, known.fastest);
  if (target_.predicted_us) known.price.seconds = predicted_s(graph, fastest.lowered, target_);
  known.beside_s.clear();  // of the plan before
  return fastest;
}

std::variant<PlannedGroup, Refusal> GroupPlans::plan(const Graph& graph, const GroupForm& form,
                                                     const Group& group, const LowerOptions& options) {
  Known& known = entry(form.price_key);
  std::unique_lock lock(known.mutex);
  find_out(graph, group, Needed::kernels, [&] { return form; }, known);
  if (known.is_written && !options.variants) {
    const bool is_taken = !known.has_dots || known.fastest || target_.predicted_us == nullptr;
    PlannedGroup out;
    if (!serves_threads_ && is_taken && known.plan && known.plan->form.key == form.key) {
      out = {known.plan->cost, known.plan->lowered};
      rename_nodes(out.lowered, known.plan->form.nodes, form.nodes);
    } else {
      const bool is_first = !serves_threads_ && !is_taken;
      out = taken(graph, group, known, lock);
      if (is_first) known.plan = std::make_unique<const Plan>(Plan{form, out.cost, out.lowered});
    }
    name_kernels(out, options.name);
    return out;
  }
  lock.unlock();
  // One that is not worth taking, but taken where there is nothing else: a node by itself.
  auto built = build_loop_nest(graph, group);
  if (const auto* refusal = std::get_if<Refusal>(&built)) return *refusal;
  std::optional<std::size_t> any;
  return write_fastest(graph, std::get<LoopNest>(built), options, any);
}

}  // namespace tilewright::passes
