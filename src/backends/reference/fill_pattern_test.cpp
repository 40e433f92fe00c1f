// Patterns of every width, on the host.
#include "backends/fill_pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace tilewright::backends {
namespace {

TEST(FillPattern, IsAsNarrowAsItCanBe) {
  EXPECT_EQ(narrowest({0, 8}).width, 1);
  EXPECT_EQ(narrowest({0x0101010101010101, 8}).bits, 1u);
  EXPECT_EQ(narrowest({0x0201020102010201, 8}).width, 2);
  EXPECT_EQ(narrowest({0x0201020102010201, 8}).bits, 0x0201u);
  EXPECT_EQ(narrowest({0x3f8000003f800000, 8}).width, 4);
  EXPECT_EQ(narrowest({0x3ff0000000000000, 8}).width, 8);
  EXPECT_EQ(narrowest({0x00ff, 2}).width, 2);
}

TEST(FillPattern, FillsWholePatternsAndNothingBehind) {
  for (const int width : {1, 2, 4, 8})
    for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{0x0123456789abcdef}}) {
      constexpr std::size_t kBytes = 40;
      alignas(8) unsigned char memory[kBytes + 8];
      std::memset(memory, 0x77, sizeof memory);
      fill_on_host(memory, {bits, width}, kBytes);
      for (std::size_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(memory[i], bits >> (8 * (i % static_cast<std::size_t>(width))) & 0xff)
            << width << " at " << i;
      for (std::size_t i = kBytes; i < sizeof memory; ++i) ASSERT_EQ(memory[i], 0x77) << width;
    }
}

}  // namespace
}  // namespace tilewright::backends
