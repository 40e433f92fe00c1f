// Walks /proc/self/maps, whose lines are "begin-end rwxp …" in hexadecimal, by address; see host_memory.h.
#include "runtime/host_memory.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace tilewright::runtime {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Status check_host_memory(const void* address, std::size_t bytes, HostUse use) {
  const std::unique_ptr<std::FILE, Close> maps(std::fopen("/proc/self/maps", "re"));
  if (!maps || bytes == 0) return Unit{};
  auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = at + bytes;
  char line[512];
  for (bool starts_line = true; at < end && std::fgets(line, sizeof line, maps.get());) {
    const bool is_start = starts_line;
    starts_line = std::char_traits<char>::find(line, std::char_traits<char>::length(line), '\n') != nullptr;
    std::uintptr_t from = 0, to = 0;
    char allowed[5] = {};
    if (!is_start || std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, allowed) != 3 || to <= at)
      continue;
    if (from > at) break;
    if (allowed[0] != 'r')
      return failure(Failure::Kind::invalid, fmt::format("this process may not read the byte at {:#x}", at));
    if (use == HostUse::write && allowed[1] != 'w')
      return failure(Failure::Kind::invalid, fmt::format("the memory at {:#x} is read-only", at));
    at = to;
  }
  if (at >= end) return Unit{};
  return failure(Failure::Kind::invalid, fmt::format("there is no memory at {:#x}", at));
}

}  // namespace tilewright::runtime
