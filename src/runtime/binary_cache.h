// BinaryCache: compiled kernels on disk. Keyed by everything that can change a binary; entries are written
// under a temporary name and renamed, checksummed, and bounded in total size. A damaged or foreign entry is a
// miss.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/base/hash.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::runtime {

struct CacheStats {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;               // found by verify
  std::vector<std::string> damaged_files;  // their paths, sorted
};

class BinaryCache {
 public:
  // An empty directory name turns the disk off. `max_bytes` bounds the folder: the least recently used
  // entries go first.
  explicit BinaryCache(std::string directory, std::uint64_t max_bytes = kDefaultMaxBytes);

  static constexpr std::uint64_t kDefaultMaxBytes = 512ull << 20;
  // $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright; empty when there is no home.
  static std::string default_directory();

  const std::string& directory() const { return directory_; }
  std::uint64_t max_bytes() const { return max_bytes_; }
  std::optional<std::string> find(const Hash128& key) const;
  // Failing to store costs a later compile, never an error for the caller: the reason is returned for
  // reports.
  Status store(const Hash128& key, const std::string& bytes);

  bool remove(const Hash128& key);  // whether it was there

  Result<CacheStats> info() const;
  Result<CacheStats> verify() const;  // reads every entry and names the damaged ones
  Result<CacheStats> clear();         // what was removed; unfinished files of ended programs go as well

 private:
  void trim();
  std::string path_of(const Hash128& key) const;
  std::string directory_;
  std::uint64_t max_bytes_;
  std::uint64_t written_since_trim_ = 0;
};

}  // namespace tilewright::runtime
