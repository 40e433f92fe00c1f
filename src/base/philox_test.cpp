// Philox4x32-10 against the known answers published with Random123 (kat_vectors).
#include <tilewright/base/philox.h>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedIsTheKeyAndCounterFillsTheLowWords) {
  EXPECT_EQ(philox4x32(0x299f31d0a4093822, 0x85a308d3243f6a88),
            philox4x32_10({0x243f6a88, 0x85a308d3, 0, 0}, {0xa4093822, 0x299f31d0}));
}

TEST(Philox, IsUsableAtCompileTime) {
  static_assert(philox4x32(0, 0)[0] == 0x6627e8d5);
  static_assert(philox4x32(1, 0) != philox4x32(0, 1));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_f32(0), 0.f);
  EXPECT_LT(uniform_f32(~0u), 1.f);
  double sum = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    for (std::uint32_t word : philox4x32(3, i)) sum += uniform_f32(word);
  }
  EXPECT_NEAR(sum / 40000, 0.5, 0.01);
}

}  // namespace
}  // namespace tilewright
