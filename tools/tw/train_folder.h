// The folder of a training: what it was started with, its log, and its checkpoints, the last two and the
// best.
#pragma once

#include <string>
#include <utility>

#include "tw/train_run.h"

namespace tilewright::tw {

class TrainFolder {
 public:
  struct Settings {
    std::string recipe, data, precision;
    bool small = false;
    std::uint64_t seed = 0;
    Index steps = 0;
  };
  // Throws Error where the folder is there and not empty, or cannot be written.
  static TrainFolder make(const std::string& path, Settings settings);
  // Throws Error where it is not such a folder.
  static TrainFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  const Settings& settings() const { return settings_; }
  // A line more in log.jsonl.
  void log(const std::string& line);
  // step-N.safetensors, and best.safetensors where it is the best. The last but one is removed when the new
  // one is whole. Throws Error where it cannot be written: the older ones stay.
  void save(const TrainRun& training, bool is_best);
  // Loads the newest checkpoint that is whole; says on standard error, unless quiet, which were not. Throws
  // Error where there is none.
  void load(TrainRun& training, bool quiet);

 private:
  TrainFolder(std::string path, Settings settings) : path_(std::move(path)), settings_(std::move(settings)) {}
  // (step, file) of the checkpoints, the newest first.
  std::vector<std::pair<Index, std::string>> checkpoints() const;
  std::string path_;
  Settings settings_;
};

}  // namespace tilewright::tw
