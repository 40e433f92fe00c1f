// The folder of a training: what it was started with (training.json), its log (log.jsonl), and its
// checkpoints.
#pragma once

#include <tilewright/nn/checkpoint_folder.h>

#include <string>

namespace tilewright::tw {

class TrainFolder {
 public:
  struct Settings {
    std::string recipe, data, precision;
    bool small = false;
    std::uint64_t seed = 0;
    Index steps = 0;
    Index accumulate = 1;
    double rate = 0;  // the largest learning rate
    double ema = 0;   // the decay of the average; 0: none
    std::string moments = "f32";
  };
  // Throws Error where the folder is there and not empty, or cannot be written.
  static TrainFolder make(const std::string& path, const Settings& settings);
  // Throws Error where it is not such a folder.
  static TrainFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  const Settings& settings() const { return settings_; }
  nn::CheckpointFolder& checkpoints() { return checkpoints_; }

  // A line more in log.jsonl. Throws Error where it cannot be written.
  void log(const std::string& line);
  // What the log says up to this step is kept; what came after it, of a training that goes on from there, is
  // not. The `seconds` of its last line; 0 where there is none.
  double cut_log(Index step);

 private:
  TrainFolder(const std::string& path, Settings settings);
  std::string path_;
  Settings settings_;
  nn::CheckpointFolder checkpoints_;
};

// The lines of a log, as objects, those that are whole. Throws Error where there is no such file.
std::vector<std::string> log_lines(const std::string& folder);
// What a folder of a training was started with. Throws Error where it is none.
TrainFolder::Settings read_settings(const std::string& folder);

}  // namespace tilewright::tw
