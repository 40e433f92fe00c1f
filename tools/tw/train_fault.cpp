// Where a training went wrong: its last steps again, one of them op by op.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "tw/train_run.h"

namespace tilewright::tw {

std::string TrainRun::batch_text(Index step) const {
  constexpr std::size_t kShown = 12;  // rows
  std::string places;
  std::size_t rows = 0;
  const auto length = static_cast<std::size_t>(options_.recipe.model.context);
  for (const StepBatch& part : batch_of(step)) {
    const std::vector<std::int32_t> tokens = part.tokens.to_vector<std::int32_t>();
    for (std::size_t first = 0; first < tokens.size(); first += length) {
      if (++rows > kShown) continue;
      const auto row = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      const auto found =
          std::search(learnt_.begin(), learnt_.end(), row, row + static_cast<std::ptrdiff_t>(length));
      places += fmt::format("{}{}", places.empty() ? "" : ", ", found - learnt_.begin());
    }
  }
  return fmt::format("batch {} of seed {}: {} rows of {} bytes, from byte {}{} of the text on", step - 1,
                     options_.seed, rows, length, places, rows > kShown ? ", …" : "");
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
