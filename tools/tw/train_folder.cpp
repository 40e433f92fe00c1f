// The folder of a training.
#include "tw/train_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/safe_file.h"
#include "tw/subject.h"

namespace tilewright::tw {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSettings = "training.json";
constexpr std::size_t kKept = 2;  // checkpoints beside the best

std::string join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

void write_file(const std::string& path, const std::string& text) {
  auto file = SafeFile::create(path, {.make_folders = true});
  Status done = file ? file->write(text) : Status(file.error());
  if (done) done = file->finish();
  if (done) done = file->publish();
  if (!done) throw Error(fmt::format("cannot write {}: {}", path, done.error().message));
}

}  // namespace

TrainFolder TrainFolder::make(const std::string& path, Settings settings) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_empty(path, error))
    throw Error(fmt::format(
        "{} is there and not empty: --resume {} goes on with it, another --out starts anew", path, path));
  const Json json = {{"recipe", settings.recipe},       {"small", settings.small}, {"data", settings.data},
                     {"precision", settings.precision}, {"seed", settings.seed},   {"steps", settings.steps}};
  write_file(join(path, kSettings), json.dump(2) + "\n");
  return {path, std::move(settings)};
}

TrainFolder TrainFolder::open(const std::string& path) {
  const std::string file = join(path, kSettings);
  if (!fs::exists(file))
    throw Error(fmt::format("{} is no folder of a training: there is no {}", path, file));
  try {
    const Json json = Json::parse(read_text(file));
    return {path,
            {.recipe = json.at("recipe"),
             .data = json.at("data"),
             .precision = json.at("precision"),
             .small = json.at("small"),
             .seed = json.at("seed"),
             .steps = json.at("steps")}};
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: {}", file, error.what()));
  }
}

void TrainFolder::log(const std::string& line) {
  const std::string path = join(path_, "log.jsonl");
  std::ofstream file(path, std::ios::app);
  file << line << "\n" << std::flush;
  if (!file) throw Error(fmt::format("cannot write {}", path));
}

std::vector<std::pair<Index, std::string>> TrainFolder::checkpoints() const {
  std::vector<std::pair<Index, std::string>> found;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kBefore = "step-", kBehind = ".safetensors";
    if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) continue;
    const char* first = name.data() + kBefore.size();
    const char* last = name.data() + name.size() - kBehind.size();
    Index step = 0;
    if (std::from_chars(first, last, step).ptr == last) found.emplace_back(step, entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void TrainFolder::save(const TrainRun& training, bool is_best) {
  training.save(join(path_, fmt::format("step-{:08}.safetensors", training.step())));
  if (is_best) training.save(join(path_, "best.safetensors"));
  const auto found = checkpoints();
  for (std::size_t i = kKept; i < found.size(); ++i) fs::remove(found[i].second);
}

void TrainFolder::load(TrainRun& training, bool quiet) {
  std::string lost;
  for (const auto& [step, path] : checkpoints()) {
    try {
      training.load(path);
      if (!lost.empty() && !quiet)
        fmt::print(stderr, "{}tw train: going on from step {}, {}\n", lost, step, path);
      return;
    } catch (const Error& error) {
      lost += fmt::format("tw train: lost: {}\n", error.what());
    }
  }
  throw Error(lost.empty() ? fmt::format("{} has no checkpoint yet", path_)
                           : fmt::format("{} has no checkpoint that is whole\n{}", path_, lost));
}

}  // namespace tilewright::tw
