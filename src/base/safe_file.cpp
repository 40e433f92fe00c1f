// Temporary name, fsync, rename, and fsync of the folder; see safe_file.h.
#include "base/safe_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tilewright {

namespace fs = std::filesystem;

namespace {

Failure cannot_be_written(std::string_view why) {
  return failure(Failure::Kind::io, fmt::format("it cannot be written: {}", why));
}

Failure could_not_be(const char* what) {
  return failure(Failure::Kind::io, fmt::format("it could not be {}: {}; what was there before is unchanged",
                                                what, std::strerror(errno)));
}

// The new name is on the disk with its folder; a file system that cannot say so keeps it all the same.
void sync_folder(const fs::path& folder) {
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  (void)::fsync(opened);
  ::close(opened);
}

}  // namespace

Result<SafeFile> SafeFile::create(std::string path, const SafeFileOptions& options) {
  std::error_code error;
  if (fs::is_symlink(path, error))
    if (const fs::path target = fs::weakly_canonical(path, error); !error) path = target.string();
  const fs::path folder = fs::path(path).parent_path();
  error.clear();
  if (options.make_folders && !folder.empty()) fs::create_directories(folder, error);
  if (error) return cannot_be_written(error.message());
  SafeFile file(std::move(path), options.durable);
  if (const Status opened = file.open(); !opened) return opened.error();
  return file;
}

Status SafeFile::open() {
  struct stat old{};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) return cannot_be_written("it is there, and no regular file");
  static std::atomic<unsigned> serial{0};
  // A name may be taken: by a process that was killed, or by one of the same number in another container.
  for (int tries = 0; file_ < 0 && tries < 1000; ++tries) {
    temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), serial++);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) {
    temporary_.clear();
    return cannot_be_written(std::strerror(errno));
  }
  if (replaces) (void)::fchmod(file_, old.st_mode & 07777);
  return Unit{};
}

SafeFile::SafeFile(SafeFile&& from) noexcept
    : path_(std::move(from.path_)),
      temporary_(std::exchange(from.temporary_, {})),
      durable_(from.durable_),
      file_(std::exchange(from.file_, -1)),
      end_(from.end_) {}

SafeFile::~SafeFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status SafeFile::write(std::span<const std::byte> bytes) { return write_at(end_, bytes); }

Status SafeFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  end_ = std::max(end_, offset + bytes.size());
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) return could_not_be("written");
    offset += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return Unit{};
}

Status SafeFile::finish() {
  if (durable_ && ::fsync(file_) != 0) return could_not_be("brought to the disk");
  if (::close(std::exchange(file_, -1)) != 0) return could_not_be("written");
  return Unit{};
}

Status SafeFile::publish() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return could_not_be("given its name");
  temporary_.clear();
  if (durable_) sync_folder(fs::path(path_).parent_path());
  return Unit{};
}

Status write_safely(const std::string& path, std::string_view content, const SafeFileOptions& options) {
  const auto at_path = [&](const Failure& f) {
    return failure(f.kind, fmt::format("{}: {}", path, f.message));
  };
  Result<SafeFile> file = SafeFile::create(path, options);
  if (!file) return at_path(file.error());
  Status done = file->write(content);
  if (done) done = file->finish();
  if (done) done = file->publish();
  return done ? done : at_path(done.error());
}

}  // namespace tilewright
