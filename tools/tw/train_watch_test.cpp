// What is a spike, and what is none.
#include "tw/train_watch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::tw {
namespace {

// A loss that falls from 4 to 2, with the noise of batches.
double falling(Index step) {
  const double noise = std::sin(12.9898 * static_cast<double>(step)) * 0.05;
  return 2 + 2 * std::exp(-static_cast<double>(step) / 100) + noise;
}

TEST(LossWatch, AFallingLossHasNone) {
  LossWatch watch;
  for (Index step = 1; step <= 1000; ++step) EXPECT_FALSE(watch.add({step, falling(step), 1})) << step;
}

TEST(LossWatch, ASpikeIsToldWhereItBegins) {
  LossWatch watch;
  for (Index step = 1; step <= 400; ++step) {
    const bool spikes = step >= 300 && step < 305;
    const auto spike = watch.add({step, falling(step) + (spikes ? 2 : 0), 1});
    EXPECT_EQ(spike.has_value(), step == 300) << step;
    if (!spike) continue;
    EXPECT_GT(spike->at.loss, spike->bound);
    EXPECT_GE(spike->bound, (1 + LossWatch::kShare) * spike->mean);
    EXPECT_EQ(to_string(*spike).rfind("step 300: the loss is ", 0), 0U) << to_string(*spike);
  }
}

TEST(LossWatch, TheFirstStepsAreNoSpikes) {
  LossWatch watch;
  for (Index step = 1; step <= LossWatch::kFirst; ++step)
    EXPECT_FALSE(watch.add({step, step % 2 == 0 ? 10.0 : 1.0, 1}));
}

}  // namespace
}  // namespace tilewright::tw
