// Which kernels a member takes, and comparing it with others.
#include "tensor/size_family.h"

#include "ir/graph_key.h"
#include "passes/plan/generalise.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace tilewright::detail {

namespace {

// Kernels to which it costs nothing that sizes are arguments: programs in a row that read blocks. Those that
// take coordinates apart, pick single elements or multiply are slower:
// docs/notes/2026-11-24-sizes-that-change.md.
bool is_plain(const tile::Plan& plan) {
  return std::all_of(plan.kernels.begin(), plan.kernels.end(), [](const tile::Kernel& k) {
    bool plain = k.grid.size() == 1 && k.grid[0].size() == 1;
    tile::for_each_op(k.body, [&](const tile::Op& op) {
      plain = plain && op.kind != tile::OpKind::gather && op.kind != tile::OpKind::dot;
    });
    return plain;
  });
}

bool has(const tile::Plan& plan, tile::OpKind kind) {
  bool out = false;
  for (const tile::Kernel& k : plan.kernels)
    tile::for_each_op(k.body, [&](const tile::Op& op) { out = out || op.kind == kind; });
  return out;
}

// The share of its time that a program may lose on a core to sizes that are arguments.
double lost_share(const tile::Plan& plan) {
  if (has(plan, tile::OpKind::dot)) return 0.05;
  return has(plan, tile::OpKind::loop) ? 0.5 : 0;
}

// What a program's kernels take at least.
double floor_s(const passes::Compiled& compiled, const tile::Target& target) {
  double seconds = 0;
  for (const auto& kernel : compiled.kernels) seconds += kernel.cost.seconds(target);
  return seconds;
}

// What a core loses where results do not fit the caches: kernels of any size are made for those that do, and
// fetch each line that they overwrite.
double lost_by_stores_s(const ir::Graph& graph, const tile::Target& target) {
  double bytes = 0;
  for (const ir::Type& type : output_types(graph)) bytes += passes::bytes_of(type);
  return target.cache_holds(bytes) ? 0 : bytes / target.memory_bytes_per_s;
}

// Whether kernels of any size lose so much a call that the size's own are worth compiling, which takes as
// long as thousands of such losses. On a GPU, where no kernel of any size was measured, this holds for all
// that is longer than what a launch hides.
bool is_worth_compiling(const ir::Graph& graph, const passes::Compiled& any_size,
                        const tile::Target& target) {
  constexpr double kLittle_s = 5e-6;
  const double seconds = floor_s(any_size, target);
  return target.ends_anywhere
             ? std::max(seconds * lost_share(any_size.plan), lost_by_stores_s(graph, target)) > kLittle_s
             : seconds > 2 * target.launch_s;
}

}  // namespace

// A graph, lowered where it is asked for.
class SizeFamily::Member {
 public:
  // Whether a graph always takes kernels of any size, or has its own where these are worth compiling.
  enum class Share : std::uint8_t { always, unless_slower };

  Member(DeviceState& device, const ir::Graph& graph, const GraphOptions& options,
         Share share = Share::always)
      : device_(device),
        target_(with_policy(device.target, options)),
        graph_(graph),
        options_(options),
        share_(share) {}

  // Null where it cannot be lowered so, or takes kernels of its own.
  passes::Compiled* lowered_by(Rows rows) {
    std::optional<passes::Compiled>& there = made_[static_cast<std::size_t>(rows)];
    bool& refused = refused_[static_cast<std::size_t>(rows)];
    if (refused) return nullptr;
    if (there) return &*there;
    refused = true;
    tile::Target target = target_;
    target.any_size = true;
    target.predicted_us = nullptr;  // of one size alone: others would be fused otherwise
    if (rows == Rows::in_blocks) target.row_bytes = 0;
    try {
      there = lowered(device_, graph_, target, pipeline_options(options_));
    } catch (const Error& e) {
      why_not_ = e.what();
      return nullptr;
    }
    there->target = target_;
    if (share_ == Share::unless_slower && is_worth_compiling(graph_, *there, target_)) {
      why_not_ = "its own kernels are faster";
      return nullptr;
    }
    refused = false;
    return &*there;
  }

  // Its program, with another plan for the same. Kernels that are given are those of the plan.
  std::shared_ptr<CompiledGraph> load(DeviceState& device, Rows rows, tile::Plan plan,
                                      std::optional<runtime::BuiltKernels> kernels = {}) {
    passes::Compiled compiled = std::move(*made_[static_cast<std::size_t>(rows)]);
    compiled.plan = std::move(plan);
    overwrite_inputs(compiled, options_.over);
    if (!options_.over.empty()) kernels.reset();  // the plan has others: of views that are read and written
    return load_graph(device, std::move(compiled), output_types(graph_), std::move(kernels));
  }

  const std::string& why_not() const { return why_not_; }  // the last time that it could not be

 private:
  std::string why_not_;
  DeviceState& device_;
  tile::Target target_;
  const ir::Graph& graph_;
  const GraphOptions& options_;
  Share share_;
  std::optional<passes::Compiled> made_[2];
  bool refused_[2] = {false, false};
};

// Shares kernels that there are already.
SizeFamily::Shared SizeFamily::fitting(DeviceState& device, Member& member) {
  for (auto g = generals_.begin(); g != generals_.end(); ++g) {
    const passes::Compiled* compiled = member.lowered_by(g->rows);
    if (!compiled) continue;
    auto plan = passes::fitted(g->plan, compiled->plan);
    if (!plan) continue;
    std::rotate(generals_.begin(), g, g + 1);
    const General& used = generals_.front();
    return {member.load(device, used.rows, std::move(*plan), runtime::BuiltKernels{used.kernels}), ""};
  }
  return {};
}

// Makes kernels by comparing with the first of `others` that gives any.
SizeFamily::Shared SizeFamily::compared(DeviceState& device, Member& member, Rows rows,
                                        const Others& others) {
  Shared out;
  const auto because = [&](const std::string& reason) {
    if (out.why_not.empty()) out.why_not = reason;
  };
  for (std::size_t i = 0;; ++i) {
    std::optional<ir::Graph> graph;
    try {
      graph = others(i);
    } catch (const std::exception& e) {
      because(std::string("the function fails at another size: ") + e.what());
      continue;
    }
    if (!graph) return out;
    Member other(device, *graph, options_);
    const passes::Compiled *here = member.lowered_by(rows), *there = other.lowered_by(rows);
    if (!here || !there) {
      because("it cannot be lowered for all sizes: " + (here ? other : member).why_not());
      continue;
    }
    auto plan = passes::generalise(here->plan, there->plan);
    if (!plan) {
      because(plan.error().message);
      continue;
    }
    General general{rows, *plan, {}};
    out.graph = member.load(device, rows, std::move(*plan));
    general.kernels = out.graph->executable->kernels();
    generals_.insert(generals_.begin(), std::move(general));
    if (generals_.size() > kMostGenerals) generals_.pop_back();
    return out;
  }
}

SizeFamily::Shared SizeFamily::shared(DeviceState& device, const ir::Graph& graph, const Others& others) {
  Member member(device, graph, options_);
  Shared out = fitting(device, member);
  if (out.graph) return out;
  for (const Rows rows : {Rows::whole, Rows::in_blocks})
    if (Shared now = compared(device, member, rows, others); now.graph || out.why_not.empty()) {
      out = std::move(now);
      if (out.graph) return out;
    }
  return out;
}

std::optional<tile::Plan> SizeFamily::plan_at(DeviceState& device, const ir::Graph& graph,
                                              const tile::Plan& known) const {
  const auto general = std::find_if(generals_.begin(), generals_.end(),
                                    [&](const General& g) { return g.plan.kernels == known.kernels; });
  if (general == generals_.end()) return std::nullopt;
  Member member(device, graph, options_);
  const passes::Compiled* compiled = member.lowered_by(general->rows);
  if (!compiled) return std::nullopt;
  auto plan = passes::fitted(general->plan, compiled->plan);
  return plan ? std::optional(std::move(*plan)) : std::nullopt;
}

SizeFamily::Shared SizeFamily::shared_eagerly(DeviceState& device, const ir::Graph& graph,
                                              const Others& imagined) {
  Member member(device, graph, options_, Member::Share::unless_slower);
  Shared out = fitting(device, member);
  if (out.graph) return out;
  const Others before = [&](std::size_t i) {
    return i < seen_.size() ? std::optional(seen_[i]) : std::nullopt;
  };
  const bool first = seen_.empty();
  if (!first) out = compared(device, member, Rows::whole, before);
  if (!out.graph && !first) out = compared(device, member, Rows::in_blocks, before);
  const passes::Compiled* whole =
      !out.graph && device.target.ends_anywhere ? member.lowered_by(Rows::whole) : nullptr;
  if (whole && is_plain(whole->plan)) out = compared(device, member, Rows::whole, imagined);
  seen_.insert(seen_.begin(), graph);
  if (seen_.size() > kMostSeen) seen_.pop_back();
  return out;
}

std::optional<std::vector<ir::Type>> imagined_types(const std::vector<ir::Type>& types, std::size_t way) {
  struct Way {
    bool last_axis, by_place;
    Index step;
  };
  // A step may lead over the edge of a tile: one back does not.
  constexpr std::array kWays = {Way{true, true, 1},  Way{true, false, 1},  Way{true, true, -1},
                                Way{false, true, 1}, Way{false, false, 1}, Way{false, true, -1}};
  if (way == kWays.size()) return std::nullopt;
  const Way& w = kWays.at(way);
  std::map<std::pair<Index, int>, Index> moved;  // a size, and its place from the right: its other size
  std::vector<ir::Type> out = types;
  for (ir::Type& type : out) {
    std::vector<Index> extents = type.shape.extents();
    const int rank = type.shape.rank();
    for (int axis = 0; axis < rank; ++axis) {
      Index& size = extents[static_cast<std::size_t>(axis)];
      const int place = rank - 1 - axis;
      if (size <= 1 || (place == 0 && rank > 1 && !w.last_axis)) continue;
      const auto nth = static_cast<Index>(moved.size()) + 1;
      size = moved.insert({{size, w.by_place ? place : 0}, std::max<Index>(size + w.step * nth, 2)})
                 .first->second;
    }
    type.shape = Shape(extents);
  }
  return out;
}

std::shared_ptr<SizeFamily> family_of(DeviceState& device, const ir::Graph& graph,
                                      const GraphOptions& options) {
  const Hash128 key = options.key_with(ir::form_of(graph));
  if (const auto* known = device.families.find(key)) return *known;
  auto fresh = std::make_shared<SizeFamily>(options);
  device.families.insert(key, fresh);
  return fresh;
}

}  // namespace tilewright::detail
