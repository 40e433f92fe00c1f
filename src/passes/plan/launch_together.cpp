// Bundles of launches: those of one kernel wait, in a list for each, until something waits for one of them.
#include "passes/plan/launch_together.h"

#include "passes/plan/kernel_prices.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/step_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::passes {

using tile::PlanBuffer;
using tile::PlanStep;

namespace {

// The most that a launch takes beside what any launch does, for it to be short (chosen, not measured).
constexpr double kShortLaunches = 4;
// Bytes of temporaries that a launch uses and that may be kept longer than they were (chosen).
constexpr Index kKeptLonger = Index{8} << 20;

constexpr int kAlone = -1;

// Which steps may run as one: those of one kernel, over one grid, by number; kAlone for all others.
struct Alike {
  std::vector<int> of_step;
  std::vector<std::size_t> most;  // of each kind of launch at once
};

// Steps that are launched at once, in their order.
using Bundle = std::vector<std::size_t>;

class Gatherer {
 public:
  // `waits_for[s]`: the steps that must be over before s begins.
  Gatherer(const Alike& alike, const std::vector<std::vector<std::size_t>>& waits_for)
      : alike_(alike), waits_for_(waits_for), place_(waits_for.size(), kDone) {}

  // Takes the steps in this order, in which each stands behind what it waits for, and delays those that may
  // run with others. What is returned is such an order, too.
  std::vector<Bundle> gather(const std::vector<std::size_t>& order) {
    for (std::size_t s : order) take(s);
    for (std::size_t d = 0; d < delayed_.size(); ++d) release(d);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kDone = ~std::size_t{0};
  struct Delayed {
    Bundle steps;
    std::set<std::size_t> needs;  // of delayed_
    bool released = false;
  };

  void take(std::size_t s) {
    const int kind = alike_.of_step[s];
    std::set<std::size_t> needs = delayed_before(s);
    if (kind == kAlone) {
      for (std::size_t d : needs) release(d);
      out_.push_back({s});
      return;
    }
    const auto known = current_.find(kind);
    if (known != current_.end()) {
      Delayed& own = delayed_[known->second];
      if (own.released || own.steps.size() == alike_.most[static_cast<std::size_t>(kind)] ||
          leads_to(needs, known->second)) {
        release(known->second);
        current_.erase(known);
        needs = delayed_before(s);
      }
    }
    const auto [at, is_new] = current_.try_emplace(kind, delayed_.size());
    if (is_new) delayed_.emplace_back();
    Delayed& own = delayed_[at->second];
    own.steps.push_back(s);
    own.needs.insert(needs.begin(), needs.end());
    place_[s] = at->second;
  }

  std::set<std::size_t> delayed_before(std::size_t s) const {
    std::set<std::size_t> out;
    for (std::size_t before : waits_for_[s])
      if (place_[before] != kDone && !delayed_[place_[before]].released) out.insert(place_[before]);
    return out;
  }

  // Whether one of these is `to`, or waits for it.
  bool leads_to(const std::set<std::size_t>& from, std::size_t to) const {
    std::vector<std::size_t> open(from.begin(), from.end());
    std::set<std::size_t> seen = from;
    while (!open.empty()) {
      const std::size_t d = open.back();
      open.pop_back();
      if (d == to) return true;
      for (std::size_t next : delayed_[d].needs)
        if (!delayed_[next].released && seen.insert(next).second) open.push_back(next);
    }
    return false;
  }

  void release(std::size_t d) {
    if (delayed_[d].released) return;
    delayed_[d].released = true;
    for (std::size_t first : std::exchange(delayed_[d].needs, {})) release(first);
    out_.push_back(std::exchange(delayed_[d].steps, {}));
  }

  const Alike& alike_;
  const std::vector<std::vector<std::size_t>>& waits_for_;
  std::vector<std::size_t> place_;  // of a step: in delayed_, or kDone where it never was delayed
  std::vector<Delayed> delayed_;
  std::map<int, std::size_t> current_;  // by kind: that which takes more
  std::vector<Bundle> out_;
};

std::vector<std::vector<std::size_t>> turned(const std::vector<std::vector<std::size_t>>& waits_for) {
  std::vector<std::vector<std::size_t>> out(waits_for.size());
  for (std::size_t s = 0; s < waits_for.size(); ++s)
    for (std::size_t before : waits_for[s]) out[before].push_back(s);
  return out;
}

std::vector<std::size_t> steps_of(const std::vector<Bundle>& bundles) {
  std::vector<std::size_t> out;
  for (const Bundle& b : bundles) out.insert(out.end(), b.begin(), b.end());
  return out;
}

// What may run as one, delayed until others wait for it; then all of it as early as may be, since what is
// read and written by launches at the end of a program can often be had long before.
std::vector<Bundle> gathered(const Alike& alike, const std::vector<std::vector<std::size_t>>& waits_for,
                             bool earlier) {
  std::vector<std::size_t> order(waits_for.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Bundle> late = Gatherer(alike, waits_for).gather(order);
  if (!earlier) return late;
  order = steps_of(late);
  std::reverse(order.begin(), order.end());
  std::vector<Bundle> early = Gatherer(alike, turned(waits_for)).gather(order);
  std::reverse(early.begin(), early.end());
  for (Bundle& b : early) std::sort(b.begin(), b.end());
  return early;
}

std::vector<PlanStep> in_bundles(const std::vector<PlanStep>& steps, const std::vector<Bundle>& bundles) {
  std::vector<PlanStep> out;
  out.reserve(steps.size());
  for (const Bundle& b : bundles)
    for (std::size_t i = 0; i < b.size(); ++i) {
      out.push_back(steps[b[i]]);
      out.back().beside_previous = i > 0;
    }
  return out;
}

bool multiplies(const tile::Kernel& kernel) {
  bool found = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) { found = found || op.kind == tile::OpKind::dot; });
  return found;
}

// As many launches as there is room for their arguments: addresses, scalars and the grid's extents. A kernel
// of tensors without elements has none.
std::size_t most_together(const tile::Kernel& kernel, const tile::Target& target) {
  if (kernel.views.empty()) return 1;
  const std::size_t bytes = 8 * (kernel.views.size() + kernel.scalars.size() + kernel.grid.size());
  return std::min(static_cast<std::size_t>(target.together_bytes) / bytes,
                  static_cast<std::size_t>(tile::kMostTogether));
}

class Launches {
 public:
  explicit Launches(const Compiled& compiled)
      : plan_(compiled.plan), target_(compiled.target), memory_(plan_.buffers.size()) {
    std::iota(memory_.begin(), memory_.end(), 0);
    for (const Overwriting& o : compiled.overwriting) {
      if (!o.why_not.empty()) continue;
      const int output = buffer_of(plan_, PlanBuffer::Role::output, o.what.output);
      for (int input : o.what.inputs)
        memory_[place(buffer_of(plan_, PlanBuffer::Role::input, input))] = output;
    }
    uses_.reserve(plan_.steps.size());
    for (const PlanStep& step : plan_.steps) uses_.push_back(uses_of(step, plan_));
  }

  // Parts of one buffer, as those of a concat that lie where it does, do not wait for one another.
  std::vector<std::vector<std::size_t>> waits_for() const {
    const std::vector<std::map<int, StepUse>> uses = uses_of_parts();
    std::vector<const std::map<int, StepUse>*> all;
    int parts = 0;
    for (const auto& use : uses) {
      all.push_back(&use);
      if (!use.empty()) parts = std::max(parts, use.rbegin()->first + 1);
    }
    std::vector<int> memory(place(parts));
    std::iota(memory.begin(), memory.end(), 0);
    return steps_to_wait_for(all, memory);
  }

  Alike alike() const {
    Alike out{.of_step = std::vector<int>(plan_.steps.size(), kAlone), .most = {}};
    struct Kind {
      std::size_t first;  // step
      std::vector<Index> grid;
      std::vector<std::size_t> steps;
    };
    std::map<std::string_view, std::vector<Kind>> kinds;  // by the kernel's name
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind != PlanStep::Kind::launch) continue;
      const tile::Kernel& kernel = kernel_of(s);
      std::vector<Index> grid = tile::grid_extents(kernel, plan_.steps[s].scalars);
      std::vector<Kind>& named = kinds[kernel.name];
      const auto same = std::find_if(named.begin(), named.end(), [&](const Kind& kind) {
        return kind.grid == grid && kernel_of(kind.first) == kernel;
      });
      (same == named.end() ? named.emplace_back(Kind{s, std::move(grid), {}}) : *same).steps.push_back(s);
    }
    KernelPrices prices(target_);
    for (const auto& [name, named] : kinds)
      for (const Kind& kind : named) {
        const std::size_t most = most_together(kernel_of(kind.first), target_);
        if (kind.steps.size() < 2 || most < 2 || !is_short(prices, kind.first)) continue;
        for (std::size_t s : kind.steps) out.of_step[s] = static_cast<int>(out.most.size());
        out.most.push_back(most);
      }
    return out;
  }

 private:
  // Elements of a memory, from `begin` to before `end`.
  struct Range {
    Index begin, end;
  };
  struct RangeUse {
    int memory;
    Range range;
    StepUse use;
  };

  // What a view may reach.
  static Range range_of(const tile::ViewParam& view, const tile::ViewBinding& bound,
                        const PlanBuffer& buffer) {
    Range out{bound.offset, bound.offset + 1};
    if (view.dtype != buffer.dtype) return {0, buffer.elements};
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      if (!view.extents[d].is_constant() || !view.strides[d].is_constant()) return {0, buffer.elements};
      const Index last = (view.extents[d].value - 1) * view.strides[d].value;
      (last < 0 ? out.begin : out.end) += last;
    }
    return out;
  }

  std::vector<RangeUse> ranges_of(std::size_t s) const {
    const PlanStep& step = plan_.steps[s];
    std::vector<RangeUse> out;
    if (step.kind != PlanStep::Kind::launch) {
      for (const auto& [b, use] : uses_[s]) out.push_back({memory_[place(b)], {0, elements(b)}, use});
      return out;
    }
    const tile::Kernel& kernel = kernel_of(s);
    const auto views = tile::view_uses(kernel);
    for (std::size_t v = 0; v < kernel.views.size(); ++v) {
      const tile::ViewBinding& bound = step.views[v];
      const tile::ViewUse& use = views[v];
      out.push_back({memory_[place(bound.buffer)],
                     range_of(kernel.views[v], bound, plan_.buffers[place(bound.buffer)]),
                     {use.read || use.accumulated, use.written || use.accumulated}});
    }
    return out;
  }

  // Uses of what lies between two places in a memory at which any view begins or ends, numbered through all
  // of them.
  std::vector<std::map<int, StepUse>> uses_of_parts() const {
    std::vector<std::vector<RangeUse>> ranges;
    ranges.reserve(plan_.steps.size());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) ranges.push_back(ranges_of(s));
    std::map<std::pair<int, Index>, int> parts;  // memory and first element → number
    for (const std::vector<RangeUse>& of_step : ranges)
      for (const RangeUse& u : of_step)
        for (Index at : {u.range.begin, u.range.end}) parts.insert({{u.memory, at}, 0});
    int count = 0;
    for (auto& [at, number] : parts) number = count++;
    std::vector<std::map<int, StepUse>> out(ranges.size());
    for (std::size_t s = 0; s < ranges.size(); ++s)
      for (const RangeUse& u : ranges[s]) {
        const auto end = parts.find({u.memory, u.range.end});
        for (auto at = parts.find({u.memory, u.range.begin}); at != end; ++at) {
          StepUse& use = out[s][at->second];
          use.read = use.read || u.use.read;
          use.written = use.written || u.use.written;
        }
      }
    return out;
  }

  static std::size_t place(int i) { return static_cast<std::size_t>(i); }
  const tile::Kernel& kernel_of(std::size_t step) const {
    return plan_.kernels[place(plan_.steps[step].kernel)];
  }

  Index elements(int buffer) const { return plan_.buffers[place(buffer)].elements; }

  bool is_short(KernelPrices& prices, std::size_t step) const {
    const tile::Kernel& kernel = kernel_of(step);
    Index kept = 0;
    for (const auto& [b, use] : uses_[step])
      if (const PlanBuffer& of = plan_.buffers[place(b)]; of.role == PlanBuffer::Role::temporary)
        kept += of.elements * static_cast<Index>(size_bytes(of.dtype));
    return kept <= kKeptLonger && !multiplies(kernel) &&
           prices.us(kernel) <= (1 + kShortLaunches) * target_.launch_s * 1e6;
  }

  const tile::Plan& plan_;
  const tile::Target& target_;
  std::vector<int> memory_;                   // of each buffer: the buffer whose memory it is
  std::vector<std::map<int, StepUse>> uses_;  // of each step
};

// Gives kernels that are launched in bundles, and those that are equal to them, a text for so many launches:
// up to the next power of two, so that programs of other sizes find it compiled.
void write_down(Compiled& compiled, const std::vector<Bundle>& bundles) {
  tile::Plan& plan = compiled.plan;
  std::vector<std::size_t> size(plan.kernels.size(), 1);  // of the largest bundle
  std::size_t at = 0;
  for (const Bundle& b : bundles)
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::size_t& largest = size[static_cast<std::size_t>(plan.steps[at++].kernel)];
      largest = std::max(largest, b.size());
    }
  struct Text {
    std::size_t kernel;  // the first
    std::size_t size;
  };
  std::map<std::string, std::vector<Text>> texts;  // by name
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    if (size[k] == 1) continue;
    std::string& note = compiled.kernels[k].note;
    note += fmt::format("{}one launch with {} more of its kind", note.empty() ? "" : "; ", size[k] - 1);
    std::vector<Text>& named = texts[plan.kernels[k].name];
    const auto same = std::find_if(named.begin(), named.end(),
                                   [&](const Text& t) { return plan.kernels[t.kernel] == plan.kernels[k]; });
    Text& text = same == named.end() ? named.emplace_back(Text{k, 1}) : *same;
    text.size = std::max(text.size, size[k]);
  }
  const auto together = [&](const tile::Kernel& kernel) {
    const auto named = texts.find(kernel.name);
    if (named == texts.end()) return 1;
    for (const Text& t : named->second)
      if (plan.kernels[t.kernel] == kernel)
        return static_cast<int>(std::min(std::bit_ceil(t.size), most_together(kernel, compiled.target)));
    return 1;
  };
  std::vector<int> counts;
  counts.reserve(plan.kernels.size());
  for (const tile::Kernel& kernel : plan.kernels) counts.push_back(together(kernel));
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    plan.kernels[k].together = counts[k];
    if (k < compiled.variants.size())
      for (tile::Kernel& v : compiled.variants[k]) v.together = counts[k];
  }
}

}  // namespace

void launch_together(Compiled& compiled, Index more_bytes) {
  tile::Plan& plan = compiled.plan;
  if (compiled.target.together_bytes == 0 || !compiled.target.predicted_us || plan.steps.size() < 2) return;
  const Launches launches(compiled);
  const Alike alike = launches.alike();
  if (alike.most.empty()) return;
  const std::vector<std::vector<std::size_t>> waits_for = launches.waits_for();
  for (const bool earlier : {true, false}) {
    const std::vector<Bundle> bundles = gathered(alike, waits_for, earlier);
    tile::Plan ordered{.buffers = plan.buffers, .steps = in_bundles(plan.steps, bundles)};
    plan_memory(ordered);
    if (ordered.arena_bytes > plan.arena_bytes + more_bytes) continue;
    plan.steps = std::move(ordered.steps);
    plan.buffers = std::move(ordered.buffers);
    plan.arena_bytes = ordered.arena_bytes;
    write_down(compiled, bundles);
    return;
  }
}

}  // namespace tilewright::passes
