// Opening and mapping files; see mapped_file.h.
#include "formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright::formats {

namespace {

// A descriptor that is closed in the end; the mapping outlives it.
struct Descriptor {
  explicit Descriptor(int f) : file(f) {}
  ~Descriptor() {
    if (file >= 0) ::close(file);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int file;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // A pipe that nobody writes to would be waited for.
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (opened.file < 0 || ::fstat(opened.file, &info) != 0)
    throw Error(fmt::format("it cannot be opened: {}", std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw Error("it is no regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.file, 0);
  if (data == MAP_FAILED)
    throw Error(fmt::format("its {} bytes cannot be mapped: {}", size, std::strerror(errno)));
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace tilewright::formats
