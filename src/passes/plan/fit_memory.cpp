// The loop that gives temporaries up, one after another, until the plan fits its budget.
#include "passes/plan/fit_memory.h"

#include "passes/plan/kernel_prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tilewright::passes {

using tile::PlanStep;

namespace {

// The time of each kernel; where the target predicts none, what its group costs by the roofline.
std::vector<double> predicted_us(const Compiled& compiled) {
  std::vector<double> out;
  out.reserve(compiled.plan.kernels.size());
  KernelPrices prices(compiled.target);
  for (std::size_t k = 0; k < compiled.plan.kernels.size(); ++k)
    out.push_back(compiled.target.predicted_us ? prices.us(compiled.plan.kernels[k])
                                               : compiled.kernels[k].cost.seconds(compiled.target) * 1e6);
  return out;
}

RepeatingPlan repeating(const Compiled& compiled) {
  const std::vector<double> us = predicted_us(compiled);
  RepeatingPlan out{.steps = {}, .buffers = compiled.plan.buffers, .origins = {}};
  for (const PlanStep& s : compiled.plan.steps) {
    const double moved =
        s.kind == PlanStep::Kind::launch
            ? 0
            : static_cast<double>(bytes_of(compiled.plan.buffers[static_cast<std::size_t>(s.buffer)]));
    out.steps.push_back({s, s.kind == PlanStep::Kind::launch
                                ? us[static_cast<std::size_t>(s.kernel)]
                                : moved / compiled.target.bytes_per_s(moved) * 1e6});
  }
  for (std::size_t b = 0; b < out.buffers.size(); ++b) out.origins.push_back(static_cast<int>(b));
  return out;
}

// The plan with repeated launches. Each has a kernel of its own, which the placing of temporaries may change.
Compiled with_steps(const Compiled& compiled, const RepeatingPlan& plan) {
  Compiled out = compiled;
  out.plan.buffers = plan.buffers;
  out.plan.steps.clear();
  for (const PlannedStep& step : plan.steps) {
    out.plan.steps.push_back(step.plan);
    if (!step.repeats || step.plan.kind != PlanStep::Kind::launch) continue;
    const auto k = static_cast<std::size_t>(step.plan.kernel);
    out.plan.steps.back().kernel = static_cast<int>(out.plan.kernels.size());
    out.plan.kernels.push_back(compiled.plan.kernels[k]);
    out.kernels.push_back(compiled.kernels[k]);
    std::string& note = out.kernels.back().note;
    note += note.empty() ? "launched again, so that less memory is needed"
                         : "; launched again, so that less memory is needed";
    out.variants.push_back(compiled.variants[k]);
  }
  return out;
}

}  // namespace

MemoryFit fit_memory(Compiled& compiled, const MemoryWish& wish,
                     const std::function<void(Compiled&)>& place) {
  const Index bytes = wish.bytes.value_or(std::numeric_limits<Index>::max());
  MemoryFit fit{.asked = bytes};
  const auto placed = [&](const RepeatingPlan& plan) {
    Compiled out = with_steps(compiled, plan);
    place(out);
    return out;
  };
  KernelUses kernels;
  kernels.reserve(compiled.plan.kernels.size());
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const auto of = tile::view_uses(kernel);
    kernels.emplace_back(of.begin(), of.end());
  }
  LaunchRepeater repeater(repeating(compiled), std::move(kernels));
  Compiled best = placed(repeater.plan());
  fit.bytes_before = best.plan.arena_bytes;
  if (repeater.give_up_checkpointed(wish.checkpointed)) best = placed(repeater.plan());
  std::vector<RepeatingPlan> tried = {repeater.plan()};
  std::size_t taken = 0;
  while (best.plan.arena_bytes > bytes) {
    // What is alive at once is less than what has a place, and more where temporaries share one: it is asked
    // for in the same proportion.
    const Index alive = repeater.peak_bytes();
    const Index goal =
        std::min(alive - 1, static_cast<Index>(static_cast<double>(alive) * static_cast<double>(bytes) /
                                               static_cast<double>(best.plan.arena_bytes)));
    const std::size_t before = tried.size();
    while (repeater.peak_bytes() > goal && repeater.give_up_one()) tried.push_back(repeater.plan());
    if (tried.size() == before) break;
    if (Compiled next = placed(tried.back()); next.plan.arena_bytes < best.plan.arena_bytes) {
      best = std::move(next);
      taken = tried.size() - 1;
    }
  }
  if (best.plan.arena_bytes <= bytes) {
    // The fewest that do.
    std::size_t low = 0, high = taken;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      Compiled next = placed(tried[middle]);
      if (next.plan.arena_bytes <= bytes) {
        best = std::move(next);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    taken = high;
  }
  fit.fits = best.plan.arena_bytes <= bytes;
  fit.bytes = best.plan.arena_bytes;
  for (const PlannedStep& s : tried[taken].steps) {
    fit.repeated += s.repeats ? 1 : 0;
    (s.repeats ? fit.more_us : fit.all_us) += s.us;
  }
  compiled = std::move(best);
  return fit;
}

std::string to_string(const MemoryFit& fit) {
  const auto megabytes = [](Index bytes) { return static_cast<double>(bytes) * 1e-6; };
  if (fit.repeated == 0)
    return fmt::format("temporaries take {:.1f} MB of the {:.1f} MB that they may", megabytes(fit.bytes),
                       megabytes(fit.asked));
  return fmt::format(
      "temporaries take {:.1f} MB, not {:.1f}, as {} repeated: {:.1f} us are predicted for "
      "that, {:.1f} for all else",
      megabytes(fit.bytes), megabytes(fit.bytes_before),
      fit.repeated == 1 ? "a launch is" : fmt::format("{} launches are", fit.repeated), fit.more_us,
      fit.all_us);
}

}  // namespace tilewright::passes
