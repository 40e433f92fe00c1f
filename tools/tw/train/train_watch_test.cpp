// What is a spike, and what is none; when batches come too slowly.
#include "tw/train/train_watch.h"

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

TEST(LoaderWatch, CountsTheTimeInWhichNothingWasDone) {
  LoaderWatch watch;
  EXPECT_EQ(watch.share(0), 0);
  watch.waited(3);
  EXPECT_DOUBLE_EQ(watch.share(10), 0.3);
  EXPECT_EQ(watch.share(2), 1);
  watch.computed(2);  // the device had so much left to do meanwhile
  EXPECT_DOUBLE_EQ(watch.share(10), 0.1);
  watch.computed(2);
  EXPECT_EQ(watch.share(10), 0);
}

TEST(LoaderWatch, TheProgressLineSaysWhenTheLoaderStarvesIt) {
  EXPECT_EQ(loader_text(0.02), "");
  EXPECT_EQ(loader_text(0.337), ", 34 % of the time waiting for batches");
}

}  // namespace
}  // namespace tilewright::tw
