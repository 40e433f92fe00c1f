#include "replay/record_folder.h"

#include <tilewright/base/error.h>
#include <tilewright/base/hash.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string_view>

namespace tilewright::replay {

using nlohmann::ordered_json;

namespace {

constexpr int kFormat = 1;  // of the index; comparing.py reads it

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw Error(fmt::format("{} cannot be written: is the disk full?", path.string()));
}

}  // namespace

RecordFolder::RecordFolder(std::filesystem::path path) : path_(std::move(path)) {
  namespace fs = std::filesystem;
  try {
    if (fs::exists(path_) && !fs::is_empty(path_) && !fs::exists(path_ / "index.json"))
      throw Error(
          fmt::format("{} holds files and is no record: name an empty or a new folder", path_.string()));
    fs::remove(path_ / "index.json");
    fs::remove_all(path_ / "texts");
    fs::create_directories(path_ / "texts");
    for (int i = 0; i < 256; ++i) fs::create_directory(path_ / "texts" / fmt::format("{:02x}", i));
  } catch (const fs::filesystem_error& e) {
    throw Error(fmt::format("the record's folder cannot be made: {}", e.what()));
  }
}

std::string RecordFolder::store_text(const std::string& text, const char* kind) {
  if (text.empty()) return "";
  const std::string hash = to_hex(hash_bytes(text)),
                    file = fmt::format("{}/{}.{}", hash.substr(0, 2), hash, kind);
  {
    const std::lock_guard lock(mutex_);
    if (!known_.insert(file).second) return hash;
    bytes_ += text.size();
  }
  write(path_ / "texts" / file, text);
  return hash;
}

std::string RecordFolder::store(const ProgramRecord& program) {
  ordered_json line = {{"machine", program.machine},
                       {"name", program.name},
                       {"graph", store_text(program.graph, "graph")},
                       {"plan", store_text(program.plan, "plan")},
                       {"failure", program.failure},
                       {"kernels", ordered_json::array()}};
  for (const KernelRecord& k : program.kernels)
    line["kernels"].push_back({{"name", k.name},
                               {"tile", store_text(k.tile, "tile")},
                               {"source", store_text(k.source, program.machine == "cpu" ? "cpp" : "cu")},
                               {"schedule", k.schedule},
                               {"launch", k.launch},
                               {"predicted_us", k.predicted_us},
                               {"candidates", store_text(k.candidates, "candidates")},
                               {"failure", k.failure}});
  // A message may quote what is no UTF-8.
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void RecordFolder::write_index(const std::vector<std::string>& lines) const {
  std::string text = fmt::format("{{\"format\": {}, \"programs\": [\n", kFormat);
  for (std::size_t i = 0; i < lines.size(); ++i) text += lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
  write(path_ / "index.json", text + "]}\n");
}

}  // namespace tilewright::replay
