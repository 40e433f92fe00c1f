// The page of trainings: curves over steps and over time, and what they were started with.
#pragma once

#include <string>
#include <vector>

#include "tw/train/train_folder.h"
#include "tw/train/train_run.h"

namespace tilewright::tw {

// A training as its folder tells it.
struct TrainedRun {
  std::string name;
  TrainFolder::Settings settings;
  std::vector<TrainReport> reports;  // at least one
};
// Throws Error where it is no folder of a training, or has no report yet.
TrainedRun read_trained(const std::string& folder);

// Settings and results by name, in the same order for every run.
std::vector<std::pair<std::string, std::string>> settings_of(const TrainedRun& run);
std::vector<std::pair<std::string, std::string>> results_of(const TrainedRun& run);

// One self-contained page. Runs have different names.
std::string train_page(const std::vector<TrainedRun>& runs, const std::string& title);

}  // namespace tilewright::tw
