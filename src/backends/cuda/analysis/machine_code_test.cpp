// What is seen of binaries that are put together by hand: one section of code, and the names of sections.
#include "backends/cuda/analysis/machine_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace tilewright::cuda {
namespace {

constexpr unsigned kWait = 0x82e, kLoad = 0x981, kAdd = 0x210, kExit = 0x94d;  // lower 12 bits, with a form

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  std::memcpy(bytes.data() + at, &value, size);
}

// An ELF64 file of two sections: `.text.kernel` with these instructions, and the sections' names.
std::string binary(const std::vector<unsigned>& instructions) {
  constexpr std::size_t kHeader = 64, kSection = 64;
  const std::string names = std::string(1, '\0') + ".text.kernel" + '\0';
  const std::size_t code = kHeader + 2 * kSection, table = code + instructions.size() * 16;
  std::string bytes(table + names.size(), '\0');
  put(bytes, 0x28, kHeader, 8), put(bytes, 0x3a, kSection, 2), put(bytes, 0x3c, 2, 2), put(bytes, 0x3e, 1, 2);
  put(bytes, kHeader, 1, 4), put(bytes, kHeader + 0x18, code, 8), put(bytes, kHeader + 0x20, table - code, 8);
  put(bytes, kHeader + kSection + 0x18, table, 8), put(bytes, kHeader + kSection + 0x20, names.size(), 8);
  for (std::size_t i = 0; i < instructions.size(); ++i) put(bytes, code + i * 16, instructions[i], 8);
  std::memcpy(bytes.data() + table, names.data(), names.size());
  return bytes;
}

TEST(MachineCode, AccessesStandBehindTheWait) {
  EXPECT_EQ(access_before_wait(binary({kAdd, kWait, kLoad, kExit})), "");
  EXPECT_NE(access_before_wait(binary({kAdd, kLoad, kWait, kExit})).find("LDG at 0x10"), std::string::npos);
}

TEST(MachineCode, WhatCannotBeReadWaitsForNothing) {
  EXPECT_NE(access_before_wait(binary({kAdd, kLoad, kExit})), "");
  EXPECT_NE(access_before_wait(""), "");
  EXPECT_NE(access_before_wait(".version 9.0\n.target sm_90a\ngriddepcontrol.wait;\n"), "");
  const std::string whole = binary({kWait, kLoad});
  for (std::size_t cut = 0; cut + 40 < whole.size(); cut += 7)
    EXPECT_EQ(access_before_wait(whole.substr(0, cut)), "the binary has no code") << cut;
}

}  // namespace
}  // namespace tilewright::cuda
