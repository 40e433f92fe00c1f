// The folder of a training.
#include "tw/train/train_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/plain_message.h"
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
    throw Unavailable("--out " + written.error().message);
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

// The values of training.json, each of its kind. All throw Error with the file's name and the key.
class SettingsReader {
 public:
  explicit SettingsReader(const std::string& file) : file_(file) {
    const std::string text = read_text(file);
    try {
      json_ = Json::parse(text);
    } catch (const Json::exception& error) {
      throw Error(fmt::format("{}: {}", file, plain_message(error)));
    }
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  std::string text(const char* key) const {
    return value(key, "a text", [](const Json& v) { return v.is_string(); });
  }
  bool flag(const char* key) const {
    return value(key, "true or false", [](const Json& v) { return v.is_boolean(); });
  }
  std::uint64_t seed(const char* key) const {
    return value(key, "a whole number from 0 on", [](const Json& v) { return v.is_number_unsigned(); });
  }
  Index count(const char* key) const {
    return value(key, "a whole number from 1 on",
                 [](const Json& v) { return v.is_number_integer() && v.get<Index>() >= 1; });
  }
  double number(const char* key, const char* what, bool (*accepts)(double)) const {
    return value(key, what, [&](const Json& v) { return v.is_number() && accepts(v.get<double>()); });
  }

 private:
  template <class Is>
  const Json& value(const char* key, const char* what, const Is& is) const {
    if (!has(key)) throw Error(fmt::format("{} has no \"{}\": it is not what tw train wrote", file_, key));
    const Json& found = json_[key];
    if (!is(found))
      throw Error(fmt::format("{}: \"{}\" is {}, and must be {}", file_, key, found.dump(), what));
    return found;
  }
  std::string file_;
  Json json_;
};

}  // namespace

TrainFolder::TrainFolder(const std::string& path, Settings settings)
    : path_(path), settings_(std::move(settings)), checkpoints_(path) {
  // What a killed process left beside the log and the settings; that folder of checkpoints removes its own,
  // and is locked: nobody else is writing here.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with("log.jsonl.") || name.starts_with("training.json.");
    if (is_ours && name.ends_with(".tmp")) fs::remove(entry.path(), error);
  }
}

TrainFolder TrainFolder::make(const std::string& path, const Settings& s) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    throw Error(fmt::format("--out {}: it is there, and no folder", path));
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
  const SettingsReader from(file);
  return {.recipe = from.text("recipe"),
          .data = from.text("data"),
          .precision = from.text("precision"),
          .small = from.flag("small"),
          .seed = from.seed("seed"),
          .steps = from.count("steps"),
          .accumulate = from.count("accumulate"),
          .rate = from.number("rate", "a positive number", [](double rate) { return rate > 0; }),
          .ema = from.has("ema") ? from.number("ema", "a number from 0 to below 1",
                                               [](double ema) { return ema >= 0 && ema < 1; })
                                 : 0,
          .moments = from.has("moments") ? from.text("moments") : "f32"};
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
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
        json.contains("seconds") && json["seconds"].is_number())
      lines.push_back(line);
  }
  return lines;
}

}  // namespace tilewright::tw
