// Content hashing: known answers, stability, and keys that must not collide.
#include <tilewright/base/hash.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilewright {
namespace {

TEST(Hash, EmptyInputHasThePublishedValue) {
  // XXH3_128bits of no bytes with seed 0, from the xxHash sanity tests.
  EXPECT_EQ(to_hex(hash_bytes("")), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, HexKeepsLeadingZeros) { EXPECT_EQ(to_hex({1, 0x20}), "00000000000000010000000000000020"); }

TEST(Hash, OneBitChangesTheHash) { EXPECT_NE(hash_bytes("kernel a"), hash_bytes("kernel b")); }

TEST(Hasher, PiecesGiveTheHashOfTheWhole) {
  std::string text(1000, 'x');
  Hasher hasher;
  for (std::size_t i = 0; i < text.size(); i += 10) hasher.add_raw(text.data() + i, 10);
  EXPECT_EQ(hasher.digest(), hash_bytes(text));
}

TEST(Hasher, BoundariesBetweenTextsCount) {
  EXPECT_NE(Hasher().add("ab").add("c").digest(), Hasher().add("a").add("bc").digest());
  EXPECT_NE(Hasher().add("").digest(), Hasher().digest());
}

TEST(Hasher, BoundariesBetweenRangesCount) {
  using V = std::vector<int>;
  EXPECT_NE(Hasher().add(V{1, 2}).add(V{3}).digest(), Hasher().add(V{1}).add(V{2, 3}).digest());
  EXPECT_NE(Hasher().add(std::vector<std::string>{"ab"}).digest(),
            Hasher().add(std::vector<std::string>{"a", "b"}).digest());
}

TEST(Hasher, IntegersOfAnyWidthAgree) {
  enum class Kind : std::uint8_t { a = 7 };
  const auto expected = Hasher().add(7).digest();
  EXPECT_EQ(Hasher().add(std::int64_t{7}).digest(), expected);
  EXPECT_EQ(Hasher().add(Kind::a).digest(), expected);
  EXPECT_NE(Hasher().add(7.0).digest(), expected);
}

TEST(Hasher, DigestDoesNotEndTheStream) {
  Hasher hasher;
  const auto before = hasher.add("a").digest();
  EXPECT_EQ(hasher.digest(), before);
  EXPECT_NE(hasher.add("b").digest(), before);
}

TEST(Hasher, MovedHasherKeepsItsState) {
  Hasher a;
  a.add("text");
  Hasher b = std::move(a);
  EXPECT_EQ(b.digest(), Hasher().add("text").digest());
}

}  // namespace
}  // namespace tilewright
