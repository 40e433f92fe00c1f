// See machine_code.h.
#include "backends/cuda/analysis/machine_code.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace tilewright::cuda {
namespace {

// The lower 9 of an instruction's 128 bits name it, three more the form of its operands; as nvdisasm 13.0
// reads them.
constexpr std::size_t kInstructionBytes = 16;
constexpr unsigned kNameBits = 0x1ff, kWait = 0x02e;
struct MemoryInstruction {
  unsigned code;
  const char* name;
};
constexpr MemoryInstruction kAccesses[] = {{0x180, "LD"},      {0x181, "LDG"},     {0x185, "ST"},
                                           {0x186, "STG"},     {0x18a, "ATOM"},    {0x1a6, "REDG"},
                                           {0x1a8, "ATOMG"},   {0x1a9, "ATOMG"},   {0x1ae, "LDGSTS"},
                                           {0x1b4, "UTMALDG"}, {0x1b5, "UTMASTG"}, {0x1ba, "UBLKCP"}};

template <class T>
T read(std::string_view bytes, std::size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The kernel's section of an ELF64 file; a cubin of ours has one kernel.
std::optional<std::string_view> code_of(std::string_view elf) {
  const auto headers = read<std::uint64_t>(elf, 0x28);
  const auto each = read<std::uint16_t>(elf, 0x3a), count = read<std::uint16_t>(elf, 0x3c),
             names = read<std::uint16_t>(elf, 0x3e);
  const auto offset = [&](std::size_t section) {
    return read<std::uint64_t>(elf, headers + section * each + 0x18);
  };
  for (std::size_t s = 0; s < count; ++s) {
    const std::uint64_t name = offset(names) + read<std::uint32_t>(elf, headers + s * each);
    if (name >= elf.size() || !elf.substr(name).starts_with(".text.")) continue;
    const auto bytes = read<std::uint64_t>(elf, headers + s * each + 0x20);
    if (offset(s) < elf.size()) return elf.substr(offset(s), bytes);
  }
  return std::nullopt;
}

}  // namespace

std::string access_before_wait(std::string_view cubin) {
  const std::optional<std::string_view> code = code_of(cubin);
  if (!code) return "the binary has no code";
  std::string early;
  for (std::size_t at = 0; at < code->size(); at += kInstructionBytes) {
    const unsigned name = read<std::uint32_t>(*code, at) & kNameBits;
    if (name == kWait) return early;
    for (const MemoryInstruction& access : kAccesses)
      if (access.code == name && early.empty())
        early = fmt::format("{} at {:#x} stands before the wait for the kernel before", access.name, at);
  }
  return "nothing waits for the kernel before";
}

}  // namespace tilewright::cuda
