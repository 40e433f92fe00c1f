// Files as memory.
#include "peers/peer_files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tilewright::lab {

namespace fs = std::filesystem;

PeerFolder::PeerFolder() {
  std::error_code ignored;
  const bool shared = access("/dev/shm", W_OK) == 0;
  std::string name = (shared ? "/dev/shm" : fs::temp_directory_path(ignored).string()) + "/tilewright-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw Error(fmt::format("no folder for the peers' tensors: {}: {}", name, std::strerror(errno)));
  path_ = name;
}

PeerFolder::~PeerFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Status with_mapped_file(const std::string& path, std::size_t size,
                        const std::function<Status(void* content)>& use) {
  const auto refuse = [&](const char* what) {
    return failure(Failure::Kind::io, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
  };
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return refuse("open");
  // Reserved now: a full folder is an error here, not a signal at the first write.
  if (const int error = posix_fallocate(file, 0, static_cast<off_t>(size > 0 ? size : 1)); error != 0) {
    close(file);
    errno = error;
    return refuse("no room");
  }
  if (size == 0) {
    close(file);
    return use(nullptr);
  }
  void* content = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (content == MAP_FAILED) return refuse("mmap");
  Status used = use(content);
  munmap(content, size);
  return used;
}

}  // namespace tilewright::lab
