// The loop of a training: steps, a progress line, reports, checkpoints, and what stops it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tw/command/output.h"
#include "tw/train/train_folder.h"
#include "tw/train/train_run.h"

namespace tilewright::tw {

class TrainLoop {
 public:
  struct Options {
    TrainRecipe recipe;
    TrainFolder* folder = nullptr;  // none: nothing is kept
    OutputOptions output;
    bool stop_on_spike = false;
    std::function<void(const std::string&)> write;  // a line of results, as it comes
  };
  TrainLoop(TrainRun& training, Options options) : training_(training), options_(std::move(options)) {}

  // Trains up to the recipe's last step, or to Ctrl-C, with a checkpoint in the end. Whether it got to the
  // end. Throws std::runtime_error where a loss is no number, or a spike is to stop it, with the step, its
  // batch and the operation, and where a checkpoint or the log cannot be written.
  bool run();

 private:
  void look();
  void report();
  void save(bool is_best);
  [[noreturn]] void stop_at_fault(const std::string& what, Index step);
  std::string progress_text();
  TrainRun& training_;
  Options options_;
  LossWatch watch_;
  Index saved_step_ = -1;
};

}  // namespace tilewright::tw
