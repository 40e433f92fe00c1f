// A folder of checkpoints: a thread that writes, a manifest that is written last.
#include "base/plain_message.h"
#include "base/safe_file.h"
#include "nn/checkpoint_file.h"
#include "nn/checkpoint_manifest.h"

#include <tilewright/nn/checkpoint_folder.h>
#include <tilewright/tensor/out_of_memory.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

namespace tilewright::nn {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStepWord = "step";  // a file tells of itself which checkpoint it is

// Nobody else writes into a folder while this lives; the system takes it back from a process that was killed.
class FolderLock {
 public:
  FolderLock(const std::string& path, const Location& where)
      : folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ < 0)
      throw Unavailable(
          fmt::format("CheckpointFolder: {}: it cannot be opened: {}", path, std::strerror(errno)), where);
    // File systems without locks have none to respect.
    if (::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(folder_);
      throw Error(
          fmt::format("CheckpointFolder: {}: another process is writing checkpoints into it; wait for its "
                      "end, or take another folder",
                      path),
          where);
    }
  }
  ~FolderLock() { ::close(folder_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

std::string made(const std::string& path, const Location& where) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw Unavailable(fmt::format("CheckpointFolder: {}: it cannot be made: {}", path, error.message()),
                      where);
  return path;
}

// What the manifest says, and why not, where it says nothing.
struct Listed {
  Manifest manifest;
  std::string lost;
};

// Every file that is called as a checkpoint is.
Manifest named_so(const std::string& folder) {
  Manifest found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto step = step_of_name(entry.path().filename().string())) found.push_back({*step});
  std::sort(found.begin(), found.end(),
            [](const ManifestEntry& a, const ManifestEntry& b) { return a.step < b.step; });
  return found;
}

// The checkpoints that a folder's manifest lists. Without a manifest each file counts: it has a checksum.
Listed listed_in(const std::string& folder) {
  const std::string path = (fs::path(folder) / kManifestName).string();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    Listed all{.manifest = named_so(folder)};
    if (!all.manifest.empty()) all.lost = fmt::format("{} is missing", path);
    return all;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<Manifest> manifest = parse_manifest(text);
  if (manifest) return {std::move(*manifest), ""};
  return {named_so(folder), fmt::format("{}: {}", path, manifest.error().message)};
}

}  // namespace

struct CheckpointFolder::State {
  State(const std::string& folder, const CheckpointFolderOptions& how, const Location& where)
      : path(made(folder, where)), options(how), lock(path, where) {
    manifest = listed_in(path).manifest;
  }

  std::string file(std::int64_t step) const { return (fs::path(path) / checkpoint_name(step)).string(); }

  // The checkpoint, the manifest, and only then what is dropped: in this order.
  void write(const HostCopy& copy, const ManifestEntry& entry, Metadata words, const Location& where) {
    words.emplace_back(kStepWord, fmt::format("{}", entry.step));
    detail::write_checkpoint(file(entry.step), copy, words, where);
    const Manifest next = with_entry(manifest, entry, options.keep_last);
    if (const Status written = write_safely((fs::path(path) / kManifestName).string(), to_text(next));
        !written)
      throw Unavailable("save_checkpoint: " + written.error().message, where);
    manifest = next;
    remove_others();
  }

  // Checkpoints that are none any more, and what a process that was killed has left. What cannot be removed
  // now is at the next save.
  void remove_others() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      const bool is_ours = name.starts_with("step-") || name.starts_with(kManifestName);
      const auto step = step_of_name(name);
      const bool is_listed = step && std::any_of(manifest.begin(), manifest.end(),
                                                 [&](const ManifestEntry& e) { return e.step == *step; });
      if ((step && !is_listed) || (is_ours && name.ends_with(".tmp"))) fs::remove(entry.path(), error);
    }
  }

  std::string path;
  CheckpointFolderOptions options;
  FolderLock lock;
  std::shared_ptr<HostCopy> own = std::make_shared<HostCopy>();
  Manifest manifest;          // not looked at while something is being written
  std::future<void> writing;  // the last member: it ends before what it writes from
};

CheckpointFolder::CheckpointFolder(const std::string& path, const CheckpointFolderOptions& options,
                                   const Location& where) {
  if (options.keep_last < 1)
    throw Error(fmt::format("CheckpointFolder: keep_last is {}; at least 1 is kept", options.keep_last),
                where);
  state_ = std::make_unique<State>(path, options, where);
}
CheckpointFolder::~CheckpointFolder() = default;
CheckpointFolder::CheckpointFolder(CheckpointFolder&&) noexcept = default;
CheckpointFolder& CheckpointFolder::operator=(CheckpointFolder&&) noexcept = default;

HostCopy& CheckpointFolder::own_copy() { return *state_->own; }

void CheckpointFolder::save_own_copy(std::int64_t step, const CheckpointOptions& options,
                                     const Location& where) {
  save(state_->own, step, options, where);
}

void CheckpointFolder::save(std::shared_ptr<const HostCopy> copy, std::int64_t step,
                            const CheckpointOptions& options, const Location& where) {
  wait();
  if (step < 0) throw Error(fmt::format("CheckpointFolder: there is no step {}", step), where);
  state_->writing =
      std::async(std::launch::async, [state = state_.get(), copy = std::move(copy), step, options, where] {
        state->write(*copy, {.step = step, .is_best = options.is_best}, options.words, where);
      });
}

void CheckpointFolder::wait() {
  if (state_->writing.valid()) state_->writing.get();
}

void CheckpointFolder::check() {
  if (state_->writing.valid() &&
      state_->writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    wait();
}

List<CheckpointFolder::Entry> CheckpointFolder::entries() const {
  if (state_->writing.valid()) state_->writing.wait();
  List<Entry> entries;
  for (const ManifestEntry& e : state_->manifest)
    entries.push_back({e.step, state_->file(e.step), e.is_best});
  return entries;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::load_newest(Context& ctx, const Location& where) {
  if (state_->writing.valid()) state_->writing.wait();
  auto [left, lost] = listed_in(state_->path);
  if (left.empty() && lost.empty()) return std::nullopt;
  for (; !left.empty(); left.pop_back()) {
    const std::int64_t step = left.back().step;
    try {
      detail::LoadedCheckpoint loaded = detail::load_checkpoint(ctx, state_->file(step), where);
      if (const std::string own = detail::word_of(loaded.words, kStepWord); own != fmt::format("{}", step))
        throw Error(fmt::format("{} is of step {}", state_->file(step), own.empty() ? "none" : own));
      state_->manifest = left;
      return Found{std::move(loaded), step, std::move(lost)};
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      lost += fmt::format("{}step {}: {}", lost.empty() ? "" : "; ", step, without_place(error));
    }
  }
  throw Error(fmt::format("load: {} has no checkpoint that is whole: {}", state_->path, lost), where);
}

}  // namespace tilewright::nn
