// What losses tell while a training runs: that one is no number, and that one is a spike.
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

}  // namespace tilewright::tw
