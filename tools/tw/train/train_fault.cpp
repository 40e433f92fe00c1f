// Where a training went wrong: its last steps again, one of them op by op.
#include <fmt/format.h>

#include <cmath>

#include "base/interrupt.h"
#include "tw/train/train_run.h"

namespace tilewright::tw {

std::string TrainRun::batch_text(Index step) const {
  constexpr Index kShown = 12;  // rows
  const Index part_rows = options_.recipe.rows / options_.parts;
  std::string places;
  Index rows = 0;
  for (Index part = 0; part < options_.parts; ++part)
    for (const Index place : data_.places(ctx_, part_rows, number_of(step, part)))
      if (++rows <= kShown) places += fmt::format("{}{}", places.empty() ? "" : ", ", place);
  return fmt::format("batch {} of seed {}: {} rows of {} {}s, from {} {}{} of {} on", step - 1, options_.seed,
                     rows, options_.recipe.model.context, data_.unit, data_.unit, places,
                     rows > kShown ? ", …" : "", data_.name);
}

TrainRun::Fault TrainRun::find_fault(Index step) {
  const auto is_finite = compile([](const TrainState& s) { return nn::all_finite(tensors_of(s)); });
  state_ = kept_->on(ctx_, state_);
  nn::HostCopy before;
  for (Index now = kept_step_ + 1; now <= step && !InterruptGuard::interrupted(); ++now) {
    before.take(state_);
    const std::vector<StepBatch> batch = batch_of(now);
    TrainStep::Done done = (*one_step_)(state_, batch, rate_of(now));
    state_ = std::move(done.next);
    const StepResult result{now, done.loss.item(), done.norm.item()};
    if (!is_bad(result) && is_finite(state_).item() != 0) continue;
    return {now, one_step_->find_non_finite(before.on(ctx_, state_), batch, rate_of(now))};
  }
  return {};
}

}  // namespace tilewright::tw
