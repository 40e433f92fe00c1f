// Temporary name, fsync, rename, and fsync of the folder; see safe_file.h.
#include "formats/safe_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace tilewright::formats {

namespace fs = std::filesystem;

SafeFile::SafeFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> serial{0};
  std::error_code no_link;
  if (fs::is_symlink(path_, no_link))
    if (const fs::path target = fs::weakly_canonical(path_, no_link); !no_link) path_ = target.string();
  temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), serial++);
  struct stat old{};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode))
    throw Error("it cannot be written: it is there, and no regular file");
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) throw Error(fmt::format("it cannot be written: {}", std::strerror(errno)));
  if (replaces) (void)::fchmod(file_, old.st_mode & 07777);
}

SafeFile::~SafeFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SafeFile::fail(const char* what) {
  throw Error(
      fmt::format("it could not be {}: {}; what was there before is unchanged", what, std::strerror(errno)));
}

void SafeFile::write(Bytes bytes) { write_at(end_, bytes); }

void SafeFile::write_at(std::uint64_t offset, Bytes bytes) {
  end_ = std::max(end_, offset + bytes.size());
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) fail("written");
    offset += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void SafeFile::sync() {
  if (::fsync(file_) != 0) fail("brought to the disk");
  if (::close(std::exchange(file_, -1)) != 0) fail("brought to the disk");
}

void SafeFile::publish() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("given its name");
  temporary_.clear();
  // The new name is on the disk with its folder; a file system that cannot say so keeps it all the same.
  const std::string folder = fs::path(path_).parent_path().string();
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  (void)::fsync(opened);
  ::close(opened);
}

}  // namespace tilewright::formats
