// Entries are "TWCACHE1", the key, the payload's size and hash, then the payload.
#include "runtime/binary_cache.h"

#include "base/safe_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace tilewright::runtime {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[8] = {'T', 'W', 'C', 'A', 'C', 'H', 'E', '1'};
constexpr std::string_view kSuffix = ".twk", kTemporarySuffix = ".tmp";

struct Header {
  char magic[8];
  Hash128 key;
  std::uint64_t size;
  Hash128 payload;
};

std::optional<std::string> read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat info{};
  std::string bytes;
  bool whole = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  if (whole) {
    bytes.resize(static_cast<std::size_t>(info.st_size));
    std::size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t n = read(file, bytes.data() + got, bytes.size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    whole = got == bytes.size();
  }
  close(file);
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

// The payload when the entry is whole, is ours and is for this key, in hex.
std::optional<std::string> payload(const std::string& entry, const std::string& key) {
  Header h;
  if (entry.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, entry.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || entry.size() - sizeof h != h.size)
    return std::nullopt;
  if (to_hex(h.key) != key) return std::nullopt;
  const std::string_view body(entry.data() + sizeof h, h.size);
  if (!(hash_bytes(body) == h.payload)) return std::nullopt;
  return std::string(body);
}

// The files of a folder with this suffix: none if there is no folder yet, a Failure if it cannot be listed.
Result<std::vector<fs::directory_entry>> entries(const std::string& directory, std::string_view suffix) {
  std::vector<fs::directory_entry> out;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == suffix) out.push_back(*it);
  if (error && error != std::errc::no_such_file_or_directory)
    return failure(Failure::Kind::io, fmt::format("cache {}: {}", directory, error.message()));
  return out;
}

}  // namespace

BinaryCache::BinaryCache(std::string directory, std::uint64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

std::string BinaryCache::default_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/tilewright";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/tilewright";
  return "";
}

std::string BinaryCache::path_of(const Hash128& key) const {
  return directory_ + "/" + to_hex(key) + std::string(kSuffix);
}

std::optional<std::string> BinaryCache::find(const Hash128& key) const {
  if (directory_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  std::optional<std::string> entry = read_file(path);
  if (!entry) return std::nullopt;
  std::optional<std::string> body = payload(*entry, to_hex(key));
  if (body) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // recently used
  return body;
}

Status BinaryCache::store(const Hash128& key, const std::string& bytes) {
  if (directory_.empty()) return Unit{};
  Header h{{}, key, bytes.size(), hash_bytes(bytes)};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  const std::string entry = std::string(reinterpret_cast<const char*>(&h), sizeof h) + bytes;
  // An entry that the machine's sudden end cuts short is a miss.
  const Status written = write_safely(path_of(key), entry, {.durable = false, .make_folders = true});
  if (!written) return failure(Failure::Kind::io, fmt::format("cache {}", written.error().message));
  written_since_trim_ += bytes.size();
  if (written_since_trim_ > max_bytes_ / 8) trim();
  return Unit{};
}

bool BinaryCache::remove(const Hash128& key) {
  std::error_code error;
  return !directory_.empty() && fs::remove(path_of(key), error);
}

void BinaryCache::trim() {
  written_since_trim_ = 0;
  struct Aged {
    fs::path path;
    std::uint64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Aged> all;
  std::uint64_t total = 0;
  std::error_code error;
  // A write takes milliseconds: what is an hour old belongs to a writer that was killed.
  const auto dead = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto unfinished = entries(directory_, kTemporarySuffix), finished = entries(directory_, kSuffix);
  if (!unfinished || !finished) return;  // the next write says why
  for (const fs::directory_entry& e : *unfinished)
    if (const auto written = e.last_write_time(error); !error && written < dead) fs::remove(e.path(), error);
  for (const fs::directory_entry& e : *finished) {
    Aged a{e.path(), e.file_size(error), e.last_write_time(error)};
    if (error) continue;
    total += a.bytes;
    all.push_back(std::move(a));
  }
  std::sort(all.begin(), all.end(), [](const Aged& a, const Aged& b) { return a.used < b.used; });
  for (const Aged& a : all) {
    if (total <= max_bytes_) break;
    if (fs::remove(a.path, error)) total -= a.bytes;
  }
}

Result<CacheStats> BinaryCache::info() const {
  CacheStats stats;
  std::error_code error;
  const auto finished = entries(directory_, kSuffix);
  if (!finished) return finished.error();
  for (const fs::directory_entry& e : *finished) {
    ++stats.entries;
    stats.bytes += e.file_size(error);
  }
  return stats;
}

Result<CacheStats> BinaryCache::verify() const {
  CacheStats stats;
  const auto finished = entries(directory_, kSuffix);
  if (!finished) return finished.error();
  for (const fs::directory_entry& e : *finished) {
    ++stats.entries;
    const std::optional<std::string> entry = read_file(e.path().string());
    if (entry) stats.bytes += entry->size();
    if (!entry || !payload(*entry, e.path().stem().string()))
      stats.damaged_files.push_back(e.path().string());
  }
  std::sort(stats.damaged_files.begin(), stats.damaged_files.end());
  stats.damaged = stats.damaged_files.size();
  return stats;
}

Result<CacheStats> BinaryCache::clear() {
  CacheStats removed;
  std::error_code error;
  // Temporary files of writers that were killed; one that still writes loses its entry, not its process.
  const auto unfinished = entries(directory_, kTemporarySuffix);
  if (!unfinished) return unfinished.error();
  for (const fs::directory_entry& e : *unfinished) fs::remove(e.path(), error);
  const auto finished = entries(directory_, kSuffix);
  if (!finished) return finished.error();
  for (const fs::directory_entry& e : *finished) {
    const std::uint64_t bytes = e.file_size(error);
    if (!fs::remove(e.path(), error))
      return failure(Failure::Kind::io, fmt::format("cache {}: {}", e.path().string(), error.message()));
    ++removed.entries;
    removed.bytes += bytes;
  }
  return removed;
}

}  // namespace tilewright::runtime
