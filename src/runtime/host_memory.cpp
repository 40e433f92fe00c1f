// Walks /proc/self/maps, whose lines are "begin-end rwxp …" in hexadecimal, by address; see host_memory.h.
#include "runtime/host_memory.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace tilewright::runtime {

Status check_host_memory(const void* address, std::size_t bytes, HostUse use) {
  std::ifstream maps("/proc/self/maps");
  if (!maps || bytes == 0) return Unit{};
  auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = at + bytes;
  for (std::string line; at < end && std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    char allowed[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, allowed) != 3 || to <= at)
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
