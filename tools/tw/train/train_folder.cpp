// The folder of a training.
#include "tw/train/train_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/safe_file.h"
#include "tw/command/subject.h"

namespace tilewright::tw {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string settings_file(const std::string& folder) { return (fs::path(folder) / "training.json").string(); }
std::string log_file(const std::string& folder) { return (fs::path(folder) / "log.jsonl").string(); }

void write_file(const std::string& path, const std::string& text) {
  if (const Status written = write_safely(path, text, {.make_folders = true}); !written)
    throw Error("--out " + written.error().message);
}

// Whether a path holds nothing but what a killed process left behind.
bool is_free(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  if (!fs::is_directory(path, error)) return false;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (!entry.path().filename().string().ends_with(".tmp")) return false;
  return !error;
}

}  // namespace

TrainFolder::TrainFolder(const std::string& path, Settings settings)
    : path_(path), settings_(std::move(settings)), checkpoints_(path) {}

TrainFolder TrainFolder::make(const std::string& path, const Settings& s) {
  if (!is_free(path))
    throw Error(fmt::format(
        "{} is there and not empty: --resume {} goes on with it, another --out starts anew", path, path));
  TrainFolder folder(path, s);
  const Json json = {{"recipe", s.recipe},         {"small", s.small}, {"data", s.data},
                     {"precision", s.precision},   {"seed", s.seed},   {"steps", s.steps},
                     {"accumulate", s.accumulate}, {"rate", s.rate},   {"ema", s.ema},
                     {"moments", s.moments}};
  write_file(settings_file(path), json.dump(2) + "\n");
  return folder;
}

TrainFolder TrainFolder::open(const std::string& path) { return {path, read_settings(path)}; }

TrainFolder::Settings read_settings(const std::string& path) {
  const std::string file = settings_file(path);
  if (!fs::exists(file))
    throw Error(fmt::format("{} is no folder of a training: there is no {}", path, file));
  try {
    const Json json = Json::parse(read_text(file));
    return {.recipe = json.at("recipe"),
            .data = json.at("data"),
            .precision = json.at("precision"),
            .small = json.at("small"),
            .seed = json.at("seed"),
            .steps = json.at("steps"),
            .accumulate = json.at("accumulate"),
            .rate = json.at("rate"),
            .ema = json.value("ema", 0.0),
            .moments = json.value("moments", "f32")};
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: {}", file, error.what()));
  }
}

void TrainFolder::log(const std::string& line) {
  std::ofstream file(log_file(path_), std::ios::app);
  file << line + "\n" << std::flush;
  if (!file)
    throw Error(fmt::format("{} cannot be written: what it held before is unchanged", log_file(path_)));
}

double TrainFolder::cut_log(Index step) {
  if (!fs::exists(log_file(path_))) return 0;
  std::string kept;
  double seconds = 0;
  for (const std::string& line : log_lines(path_)) {
    const Json json = Json::parse(line);
    if (json.at("step").get<Index>() > step) break;
    seconds = json.at("seconds");
    kept += line + "\n";
  }
  write_file(log_file(path_), kept);
  return seconds;
}

std::vector<std::string> log_lines(const std::string& folder) {
  std::istringstream text(read_text(log_file(folder)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step") && json.contains("seconds")) lines.push_back(line);
  }
  return lines;
}

}  // namespace tilewright::tw
