// Which launches read an input and write the output that is to lie there, and an order in which the readers
// come first.
#include "passes/plan/overwrite_inputs.h"

#include "passes/plan/kernel_prices.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/same_blocks.h"
#include "passes/plan/step_buffers.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <utility>

namespace tilewright::passes {

using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

std::size_t place(int i) { return static_cast<std::size_t>(i); }

// What stands against one memory for two buffers, as a sentence: empty where nothing does.
struct Obstacle {
  std::string why;
  bool names_kernel = false;  // the sentence says which kernel, and so tells users more than others do
  bool is_there() const { return !why.empty(); }
};

class Overwriter {
 public:
  Overwriter(Plan& plan, std::vector<std::vector<tile::Kernel>>& variants)
      : plan_(plan), variants_(variants), memory_(plan.buffers.size()) {
    std::iota(memory_.begin(), memory_.end(), 0);
    look_at_steps();
  }

  void merge_copied_temporaries() {
    for (bool merged = true; merged;) {
      merged = false;
      for (const PlanStep& step : std::vector<PlanStep>(plan_.steps))
        merged = merged || (step.kind == PlanStep::Kind::copy && merge_temporary(step.from, step.buffer));
    }
  }

  // Changes one group of launches at a time and then looks at all anew: launches may have changed places.
  void reuse_large_temporaries(const tile::Target& target) {
    while (reuse_in_equal_kernels(target)) {
    }
  }

  Overwriting grant(const Overwrite& wish) {
    if (wish.output >= 0) return {wish, obstacle(wish).why};
    Obstacle told{"no output has its size and type"};
    for (const int output : fitting(wish.inputs.front())) {
      Obstacle found = obstacle({output, wish.inputs});
      if (!found.is_there()) return {{output, wish.inputs}, ""};
      if (!told.names_kernel) told = std::move(found);
    }
    return {wish, std::move(told.why)};
  }

 private:
  Obstacle obstacle(const Overwrite& wish) {
    const int output = buffer(PlanBuffer::Role::output, wish.output);
    std::vector<int> inputs;
    inputs.reserve(wish.inputs.size());
    for (int i : wish.inputs) inputs.push_back(buffer(PlanBuffer::Role::input, i));
    const PlanBuffer& to = plan_.buffers[place(output)];
    for (int i : inputs) {
      const PlanBuffer& from = plan_.buffers[place(i)];
      if (from.dtype != to.dtype || from.elements != to.elements) return {"it has another size or type"};
      if (memory_[place(i)] != i) return {"another output is written there"};
    }
    Obstacle found = lay(output, inputs);
    if (!found.is_there())
      for (int i : inputs) memory_[place(i)] = output;
    return found;
  }

  // What an arena must shrink by for a kernel to be changed: one that only reads an operand has more ways to
  // read it.
  static constexpr Index kMuchMemory = Index{128} << 20;
  // The share of a program's time that changed kernels may cost: a measurement would hardly find it. Chosen,
  // not measured (docs/notes/2026-11-24-in-place.md).
  static constexpr double kNotFelt = 1.0 / 200;

  // A launch that is the last to read the temporary `from`, and the first to write `to`, which may lie there.
  struct Succession {
    std::size_t step = 0;
    int from = -1, to = -1;
    std::vector<int> views;  // of both
  };
  // Equal kernels are looked at together: where each needs the memory after another, one of them alone saves
  // none.
  bool reuse_in_equal_kernels(const tile::Target& target) {
    std::vector<std::vector<Succession>> alike;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const std::optional<Succession> found = succession(s);
      if (!found) continue;
      const auto same = std::find_if(alike.begin(), alike.end(), [&](const std::vector<Succession>& others) {
        return others[0].views == found->views && kernel_of(others[0].step) == kernel_of(s);
      });
      (same == alike.end() ? alike.emplace_back() : *same).push_back(*found);
    }
    bool merged = false;
    for (const std::vector<Succession>& equal : alike) {
      std::vector<PlanStep> steps = plan_.steps;
      for (const Succession& s : equal) steps = with_buffer(std::move(steps), s.from, s.to);
      if (arena(plan_.steps) - arena(steps) < kMuchMemory || slows(equal, target)) continue;
      for (const Succession& s : equal) merged = merge_temporary(s.from, s.to) || merged;
      if (merged) break;
    }
    return merged;
  }

  std::optional<Succession> succession(std::size_t s) const {
    if (plan_.steps[s].kind != PlanStep::Kind::launch) return std::nullopt;
    for (const auto& [from, to] : successors(s)) {
      std::vector<int> views;
      for (std::size_t v = 0; v < plan_.steps[s].views.size(); ++v)
        if (const int b = plan_.steps[s].views[v].buffer; b == from || b == to)
          views.push_back(static_cast<int>(v));
      if (!obstacle_to_merging(plan_.steps[s], views).is_there())
        return Succession{s, from, to, std::move(views)};
    }
    return std::nullopt;
  }
  const tile::Kernel& kernel_of(std::size_t step) const {
    return plan_.kernels[place(plan_.steps[step].kernel)];
  }

  // Temporaries that a step is the last to use, with those of one size that it is the first to use.
  std::vector<std::pair<int, int>> successors(std::size_t s) const {
    const auto large = [&](int b) {
      const PlanBuffer& of = plan_.buffers[place(b)];
      return of.role == PlanBuffer::Role::temporary &&
             of.elements * static_cast<Index>(size_bytes(of.dtype)) >= kMuchMemory;
    };
    const auto used = [&](int b, std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i)
        if (uses_[i].count(b)) return true;
      return false;
    };
    std::vector<std::pair<int, int>> out;
    for (const auto& [a, read] : uses_[s])
      for (const auto& [b, written] : uses_[s]) {
        const PlanBuffer &from = plan_.buffers[place(a)], &to = plan_.buffers[place(b)];
        if (a == b || read.written || written.read || !large(a) || !large(b)) continue;
        if (from.dtype == to.dtype && from.elements == to.elements && !used(b, 0, s) &&
            !used(a, s + 1, plan_.steps.size()))
          out.push_back({a, b});
      }
    return out;
  }

  static std::vector<PlanStep> with_buffer(std::vector<PlanStep> steps, int from, int to) {
    for (PlanStep& step : steps) rename_buffer(step, from, to);
    return steps;
  }

  // Whether the launches, changed so that they overwrite, cost the program more than kNotFelt of its time.
  bool slows(const std::vector<Succession>& equal, const tile::Target& target) const {
    if (!target.predicted_us) return false;
    const tile::Kernel& kernel = kernel_of(equal[0].step);
    const double more_us = static_cast<double>(equal.size()) *
                           (target.predicted_us(with_one_view(kernel, equal[0].views).kernel, target) -
                            target.predicted_us(kernel, target));
    double all_us = 0;
    KernelPrices prices(target);
    for (const tile::Kernel& k : plan_.kernels) {
      if (more_us <= kNotFelt * all_us) return false;
      all_us += prices.us(k);
    }
    return more_us > kNotFelt * all_us;
  }

  // A temporary becomes what it is copied to.
  bool merge_temporary(int from, int to) {
    const PlanBuffer &a = plan_.buffers[place(from)], &b = plan_.buffers[place(to)];
    if (a.role != PlanBuffer::Role::temporary || a.dtype != b.dtype || a.elements != b.elements) return false;
    if (lay(to, {from}).is_there()) return false;
    plan_.steps = with_buffer(std::move(plan_.steps), from, to);
    look_at_steps();
    return true;
  }

  // Outputs that could take an input's place, those first whose kernels read it: others are better off
  // elsewhere.
  std::vector<int> fitting(int input) const {
    const int from = buffer(PlanBuffer::Role::input, input);
    std::set<int> written;  // by a step that reads the input
    for (const std::map<int, StepUse>& uses : uses_) {
      if (!uses.count(from)) continue;
      for (const auto& [b, use] : uses)
        if (use.written) written.insert(b);
    }
    std::vector<int> takers(memory_.size(), 0);
    for (int m : memory_) ++takers[place(m)];
    std::vector<int> first, others;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& to = plan_.buffers[b];
      const PlanBuffer& of = plan_.buffers[place(from)];
      if (to.role != PlanBuffer::Role::output || takers[b] > 1 || to.dtype != of.dtype ||
          to.elements != of.elements)
        continue;
      (written.count(static_cast<int>(b)) ? first : others).push_back(to.position);
    }
    first.insert(first.end(), others.begin(), others.end());
    return first;
  }

  int buffer(PlanBuffer::Role role, int position) const { return buffer_of(plan_, role, position); }

  // Lays an output over inputs, unless an obstacle stands against it: nothing is changed then.
  Obstacle lay(int output, const std::vector<int>& inputs) {
    const auto is_input = [&](int b) { return std::find(inputs.begin(), inputs.end(), b) != inputs.end(); };
    std::vector<std::size_t> steps;  // all but copies of the input to itself
    std::vector<const std::map<int, StepUse>*> used;
    std::vector<std::size_t> readers, writers;  // of the input and of the output: places in `steps`
    std::vector<std::size_t> makers, users;  // what writes the input, as of a temporary; what uses the output
    std::vector<std::pair<std::size_t, std::vector<int>>> merged;  // step, views
    bool copied = false;  // the input to the output, by a step before
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      if (step.kind == PlanStep::Kind::copy && step.buffer == output && is_input(step.from)) {
        copied = true;
        continue;
      }
      const std::map<int, StepUse>& uses = uses_[s];
      used.push_back(&uses);
      const auto to_output = uses.find(output);
      const bool writes = to_output != uses.end() && to_output->second.written;
      const auto of_inputs = [&](bool StepUse::* how) {
        return std::any_of(inputs.begin(), inputs.end(), [&](int i) {
          const auto use = uses.find(i);
          return use != uses.end() && use->second.*how;
        });
      };
      const bool reads = of_inputs(&StepUse::read);
      if (of_inputs(&StepUse::written)) {
        // Two blocks placed in one tensor are such a case: the first is in its memory by now.
        if (copied) return {"what is copied is written again behind the copy"};
        makers.push_back(steps.size());
      }
      if (to_output != uses.end()) users.push_back(steps.size());
      if (reads) readers.push_back(steps.size());
      if (writes) writers.push_back(steps.size());
      steps.push_back(s);
      if (!reads || !writes) continue;
      std::vector<int> views;
      for (std::size_t v = 0; v < step.views.size(); ++v)
        if (step.views[v].buffer == output || is_input(step.views[v].buffer))
          views.push_back(static_cast<int>(v));
      if (Obstacle found = obstacle_to_merging(step, views); found.is_there()) return found;
      merged.push_back({s, std::move(views)});
    }
    const std::optional<std::vector<std::size_t>> order =
        in_order(used, {{readers, writers}, {makers, users}});
    if (!order) return late_reader(steps, readers, writers);
    std::vector<std::size_t> chosen;
    chosen.reserve(order->size());
    for (std::size_t i : *order) chosen.push_back(steps[i]);
    if (!std::is_sorted(chosen.begin(), chosen.end())) {
      std::vector<PlanStep> ordered;
      ordered.reserve(chosen.size());
      for (std::size_t s : chosen) ordered.push_back(plan_.steps[s]);
      if (Obstacle found = growth(ordered, output); found.is_there()) return found;
    }
    for (const auto& [s, views] : merged) {
      merge(plan_.steps[s], views);
      uses_[s] = uses_of(plan_.steps[s], plan_);
    }
    keep_steps(chosen);
    return {};
  }

  void look_at_steps() {
    uses_.clear();
    uses_.reserve(plan_.steps.size());
    for (const PlanStep& step : plan_.steps) uses_.push_back(uses_of(step, plan_));
  }

  // The steps at these places, in this order, and no others.
  void keep_steps(const std::vector<std::size_t>& chosen) {
    std::vector<PlanStep> steps;
    std::vector<std::map<int, StepUse>> uses;
    steps.reserve(chosen.size());
    uses.reserve(chosen.size());
    for (std::size_t s : chosen) {
      steps.push_back(std::move(plan_.steps[s]));
      uses.push_back(std::move(uses_[s]));
    }
    plan_.steps = std::move(steps);
    uses_ = std::move(uses);
  }

  const std::string& kernel_name(const PlanStep& step) const {
    return plan_.kernels[place(step.kernel)].name;
  }

  Obstacle obstacle_to_merging(const PlanStep& step, const std::vector<int>& views) const {
    const auto of_kernel = [&](std::string_view why) {
      return Obstacle{fmt::format("kernel {} {}", kernel_name(step), why), true};
    };
    for (int v : views)
      if (step.views[place(v)].offset != step.views[place(views[0])].offset)
        return of_kernel("reads it at another place than it writes");
    const std::string why = why_not_same_memory(plan_.kernels[place(step.kernel)], step.scalars, views);
    return why.empty() ? Obstacle{} : of_kernel(why);
  }

  void merge(PlanStep& step, const std::vector<int>& views) {
    tile::Kernel& kernel = plan_.kernels[place(step.kernel)];
    if (place(step.kernel) < variants_.size()) {
      std::vector<tile::Kernel>& others = variants_[place(step.kernel)];
      std::erase_if(others, [&](const tile::Kernel& k) {
        return !why_not_same_memory(k, step.scalars, views).empty();
      });
      for (tile::Kernel& k : others) k = with_one_view(k, views).kernel;
    }
    OneView one = with_one_view(kernel, views);
    std::vector<tile::ViewBinding> bindings;
    for (int v = 0; v < static_cast<int>(step.views.size()); ++v)
      if (v == one.kept || std::find(views.begin(), views.end(), v) == views.end())
        bindings.push_back(step.views[place(v)]);
    kernel = std::move(one.kernel);
    step.views = std::move(bindings);
  }

  // Steps that come before other ones.
  using Before = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;

  static bool stand_so(const Before& wanted) {
    for (std::size_t a : wanted.first)
      for (std::size_t b : wanted.second)
        if (a > b) return false;
    return true;
  }

  // The order of steps that is nearest to the one there is: what meets in memory stays as it stood, but
  // what is wanted earlier comes earlier. Nothing where there is none.
  std::optional<std::vector<std::size_t>> in_order(const std::vector<const std::map<int, StepUse>*>& used,
                                                   const std::vector<Before>& wanted) const {
    if (std::all_of(wanted.begin(), wanted.end(), stand_so)) {
      std::vector<std::size_t> as_it_is(used.size());
      std::iota(as_it_is.begin(), as_it_is.end(), std::size_t{0});
      return as_it_is;
    }
    std::vector<std::vector<std::size_t>> later(used.size());
    std::vector<int> waits(used.size(), 0);
    const auto before = [&](std::size_t a, std::size_t b) {
      later[a].push_back(b);
      ++waits[b];
    };
    const std::vector<std::vector<std::size_t>> stays_behind = steps_to_wait_for(used, memory_);
    for (std::size_t s = 0; s < used.size(); ++s)
      for (std::size_t first : stays_behind[s]) before(first, s);
    for (const auto& [first, then] : wanted)
      for (std::size_t a : first)
        for (std::size_t b : then)
          if (a != b) before(a, b);
    std::vector<std::size_t> order;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t s = 0; s < used.size(); ++s)
      if (waits[s] == 0) ready.push(s);
    while (!ready.empty()) {
      const std::size_t s = ready.top();
      ready.pop();
      order.push_back(s);
      for (std::size_t t : later[s])
        if (--waits[t] == 0) ready.push(t);
    }
    if (order.size() != used.size()) return std::nullopt;
    return order;
  }

  // A launch that reads the input and waits for what writes there.
  Obstacle late_reader(const std::vector<std::size_t>& steps, const std::vector<std::size_t>& readers,
                       const std::vector<std::size_t>& writers) const {
    const auto step = [&](std::size_t at) -> const PlanStep& { return plan_.steps[steps[at]]; };
    const auto text = [&](const PlanStep& s) {
      return s.kind == PlanStep::Kind::launch ? "kernel " + kernel_name(s) : std::string("a copy");
    };
    const PlanStep& reader = step(readers.back());
    return {fmt::format("{} reads it and waits for {}, which writes there", text(reader),
                        text(step(writers.front()))),
            reader.kind == PlanStep::Kind::launch};
  }

  Index arena(const std::vector<PlanStep>& steps) const {
    Plan places{.buffers = plan_.buffers, .steps = steps};
    plan_memory(places);
    return places.arena_bytes;
  }

  // Launches in another order keep temporaries longer, perhaps for more than the output's own memory.
  Obstacle growth(const std::vector<PlanStep>& ordered, int output) const {
    const PlanBuffer& to = plan_.buffers[place(output)];
    const Index saved = to.elements * static_cast<Index>(size_bytes(to.dtype));
    const Index more = arena(ordered) - arena(plan_.steps);
    if (more <= saved) return {};
    return {fmt::format("its readers first would take {} B more of temporaries", more)};
  }

  Plan& plan_;
  std::vector<std::vector<tile::Kernel>>& variants_;
  std::vector<int> memory_;                   // of each buffer: the buffer whose memory it is
  std::vector<std::map<int, StepUse>> uses_;  // of each step
};

}  // namespace

void merge_copied_temporaries(Plan& plan, std::vector<std::vector<tile::Kernel>>& variants) {
  Overwriter(plan, variants).merge_copied_temporaries();
}

void reuse_large_temporaries(Plan& plan, std::vector<std::vector<tile::Kernel>>& variants,
                             const tile::Target& target) {
  Overwriter(plan, variants).reuse_large_temporaries(target);
}

std::vector<Overwriting> overwrite_inputs(Plan& plan, std::vector<std::vector<tile::Kernel>>& variants,
                                          const std::vector<Overwrite>& wanted) {
  Overwriter overwriter(plan, variants);
  std::vector<Overwriting> out;
  out.reserve(wanted.size());
  for (const Overwrite& wish : wanted) out.push_back(overwriter.grant(wish));
  plan_memory(plan);
  return out;
}

}  // namespace tilewright::passes
