// What tells, while a training runs, that a loss is no number, that one is a spike, and that batches come too
// slowly.
#pragma once

#include <tilewright/base/shape.h>

#include <optional>
#include <string>

namespace tilewright::tw {

// What came of a step.
struct StepResult {
  Index step = 0;  // counted from 1
  double loss = 0, norm = 0;
};

// A loss is a spike where it is above the running mean of the losses before it by more than kDeviations of
// their deviations and by more than kShare of the mean. The mean forgets a share of kForgets each step, which
// is 50 steps; spikes are looked for from the kFirst-th loss on.
class LossWatch {
 public:
  static constexpr double kDeviations = 6, kShare = 0.1, kForgets = 0.02;
  static constexpr Index kFirst = 20;

  struct Spike {
    StepResult at;
    double mean = 0, bound = 0;
  };
  // Takes the next step's loss, a number. A spike is told where it begins.
  std::optional<Spike> add(const StepResult& result);

 private:
  Index count_ = 0;
  double mean_ = 0, variance_ = 0;
  bool spiking_ = false;
};
// "step 412: the loss is 5.1, a spike: above 2.3, …".
std::string to_string(const LossWatch::Spike& spike);

// Whether batches are made as fast as they are learnt from. Waiting for one costs nothing while the device
// still has steps to compute: what was waited for those is taken off.
class LoaderWatch {
 public:
  // A part of the steps' time that is told in the progress line (chosen).
  static constexpr double kShown = 0.1;

  void waited(double seconds) { waited_s_ += seconds; }
  // Adds time for which the training waited for the device.
  void computed(double seconds) { computed_s_ += seconds; }
  // The part of `seconds` in which nothing was done for want of a batch, from 0 to 1.
  double share(double seconds) const;

 private:
  double waited_s_ = 0, computed_s_ = 0;
};
// ", 34 % of the time waiting for batches"; empty where that is less than LoaderWatch::kShown.
std::string loader_text(double share);

}  // namespace tilewright::tw
