// Names and files of records; the JSON itself is in json.cpp.
#include "harness/run/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tilewright::lab {

namespace {

constexpr Verdict kAllVerdicts[] = {Verdict::baseline,   Verdict::faster,      Verdict::slower,
                                    Verdict::same,       Verdict::wrong,       Verdict::failed,
                                    Verdict::impossible, Verdict::unavailable, Verdict::no_memory,
                                    Verdict::untimed,    Verdict::uncompared};

Failure io_failure(std::string_view what, const std::string& path, int error) {
  return failure(Failure::Kind::io, fmt::format("{} {}: {}", what, path, std::strerror(error)));
}

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_failure("cannot write", path, errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return io_failure("cannot sync", path, errno);
  return Unit{};
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::baseline:
      return "BASELINE";
    case Verdict::faster:
      return "FASTER";
    case Verdict::slower:
      return "SLOWER";
    case Verdict::same:
      return "SAME";
    case Verdict::wrong:
      return "WRONG";
    case Verdict::failed:
      return "FAILED";
    case Verdict::impossible:
      return "IMPOSSIBLE";
    case Verdict::unavailable:
      return "UNAVAILABLE";
    case Verdict::no_memory:
      return "NO MEMORY";
    case Verdict::untimed:
      return "UNTIMED";
    case Verdict::uncompared:
      return "UNCOMPARED";
  }
  return "?";
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  for (Verdict verdict : kAllVerdicts) {
    if (name(verdict) == text) return verdict;
  }
  return std::nullopt;
}

std::string Row::key() const {
  return fmt::format("{}/{} {} {} {}", target, contender, device, shape, dtype);
}

Status write_file(const std::string& path, std::string_view content) {
  std::error_code made;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, made);
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return io_failure("cannot create a file beside", path, errno);
  Status written = write_all(fd, content, temporary);
  // mkstemp makes the file private; a result is for everyone to read.
  if (::fchmod(fd, 0644) != 0 && written) written = io_failure("cannot set the mode of", temporary, errno);
  if (::close(fd) != 0 && written) written = io_failure("cannot close", temporary, errno);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = io_failure("cannot rename to", path, errno);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return failure(Failure::Kind::not_found, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  std::ostringstream content;
  if (file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
  if (file.bad()) return failure(Failure::Kind::io, fmt::format("cannot read {}", path));
  return content.str();
}

Status write_run(const RunRecord& run, const std::string& path) { return write_file(path, to_json(run)); }

Result<RunRecord> read_run(const std::string& path) {
  auto content = read_file(path);
  if (!content) return content.error();
  auto run = parse_run(*content);
  if (!run) return failure(run.error().kind, fmt::format("{}: {}", path, run.error().message));
  return run;
}

}  // namespace tilewright::lab
