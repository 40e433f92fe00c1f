// Running mean and deviation of losses; seconds without a batch.
#include "tw/train/train_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::tw {

std::optional<LossWatch::Spike> LossWatch::add(const StepResult& result) {
  const double bound = mean_ + std::max(kDeviations * std::sqrt(variance_), kShare * mean_);
  const bool above = count_ >= kFirst && result.loss > bound;
  const std::optional<Spike> spike =
      above && !spiking_ ? std::optional(Spike{result, mean_, bound}) : std::nullopt;
  spiking_ = above;
  // A spike counts as the bound: those behind it are measured by the same mean.
  const double loss = above ? bound : result.loss;
  ++count_;
  const double share = std::max(kForgets, 1 / static_cast<double>(count_));
  const double away = loss - mean_;
  mean_ += share * away;
  variance_ = (1 - share) * (variance_ + share * away * away);
  return spike;
}

std::string to_string(const LossWatch::Spike& spike) {
  return fmt::format(
      "step {}: the loss is {:.4g}, a spike: above {:.4g}, which is the running mean of {:.4g} and {:.0f} "
      "deviations, at least {:.0f} % more",
      spike.at.step, spike.at.loss, spike.bound, spike.mean, LossWatch::kDeviations, 100 * LossWatch::kShare);
}

double LoaderWatch::share(double seconds) const {
  return seconds > 0 ? std::clamp((waited_s_ - computed_s_) / seconds, 0.0, 1.0) : 0;
}

std::string loader_text(double share) {
  return share < LoaderWatch::kShown ? ""
                                     : fmt::format(", {:.0f} % of the time waiting for batches", 100 * share);
}

}  // namespace tilewright::tw
