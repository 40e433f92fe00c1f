// A record on disk: texts/ab/<hash>.<kind>, each different text once, and index.json, one program a line.
#pragma once

#include "replay/program_record.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tilewright::replay {

class RecordFolder {
 public:
  // Throws Error when the folder cannot be made, or holds something that is no record. A record that is there
  // is replaced.
  explicit RecordFolder(std::filesystem::path path);

  // Writes the program's texts, and returns its line of the index. Threads may do this at the same time.
  std::string store(const ProgramRecord& program);
  void write_index(const std::vector<std::string>& lines) const;

  std::size_t text_count() const { return known_.size(); }
  std::size_t text_bytes() const { return bytes_; }

 private:
  std::string store_text(const std::string& text, const char* kind);  // its hash

  std::filesystem::path path_;
  std::mutex mutex_;
  std::set<std::string> known_;  // files
  std::size_t bytes_ = 0;
};

}  // namespace tilewright::replay
