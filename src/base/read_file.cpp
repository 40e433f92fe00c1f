// open(), read() and close().
#include "base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tilewright {

Result<std::string> read_file(const std::string& path) {
  const auto why = [&](int error) {
    const auto kind = error == ENOENT ? Failure::Kind::not_found : Failure::Kind::io;
    return failure(kind, fmt::format("cannot read {}: {}", path, std::strerror(error)));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return why(errno);
  std::string text;
  std::array<char, 1 << 16> part;
  ssize_t got = 0;
  do {
    got = ::read(file, part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  const int error = errno;
  ::close(file);
  if (got < 0) return why(error);
  return text;
}

}  // namespace tilewright
