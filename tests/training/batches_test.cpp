// Batches by number: each window once per epoch, documents told apart, nothing remembered.
#include <gtest/gtest.h>

#include <tilewright/nn/batches.h>
#include <tilewright/nn/permutation.h>
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include "formats/files.h"

namespace tilewright::nn {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(Permutations, AreBijectionsOfEverySize) {
  for (Index size = 1; size <= 300; ++size) {
    const Permutation order(size, 17, 3);
    std::set<Index> seen;
    for (Index place = 0; place < size; ++place) seen.insert(order(place));
    EXPECT_EQ(static_cast<Index>(seen.size()), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
  const Index large = (Index{1} << 40) + 12345;
  const Permutation order(large, 1, 0);
  std::set<Index> seen;
  for (Index place = 0; place < 1000; ++place) seen.insert(order(large - 1 - place * 1'000'003));
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_LT(*seen.rbegin(), large);
  EXPECT_THROW(Permutation(0, 1, 1), Error);
  EXPECT_THROW(order(large), Error);
  EXPECT_THROW(order(-1), Error);
}

TEST(Permutations, PutEachThingAnywhereEquallyOften) {
  // χ² of 10,000 draws over 7 places, for each thing; 6 degrees of freedom: above 30 once in 25,000 times.
  for (Index thing = 0; thing < 7; ++thing) {
    double counts[7] = {};
    for (std::uint64_t seed = 0; seed < 100; ++seed)
      for (std::uint64_t epoch = 0; epoch < 100; ++epoch) ++counts[Permutation(7, seed, epoch)(thing)];
    double chi2 = 0;
    for (const double count : counts) chi2 += (count - 1e4 / 7) * (count - 1e4 / 7) / (1e4 / 7);
    EXPECT_LT(chi2, 30) << thing;
  }
}

struct Batches : testing::Test {
  Context ctx{{.device = "reference", .cache_directory = ""}};
  test::Folder folder;
  int made = 0;
  static constexpr std::int32_t kEnd = 999;

  // The documents, with kEnd behind each, in shards of 8.
  TokenShards shards(const std::vector<Tokens>& documents, std::optional<std::int32_t> end = kEnd) {
    const std::string path = folder.file("s" + std::to_string(made++));
    TokenShardWriter writer({.folder = path, .vocabulary = 1000, .end_of_text = end, .shard_tokens = 8});
    for (const Tokens& document : documents) writer.add(document);
    writer.finish();
    return TokenShards(path);
  }
  // 0, 1, 2 … without ends.
  TokenShards counted(int size) {
    Tokens tokens(static_cast<std::size_t>(size));
    std::iota(tokens.begin(), tokens.end(), 0);
    return shards({tokens}, std::nullopt);
  }
};

TEST_F(Batches, OfShuffledWindowsHaveEachOncePerEpoch) {
  const TokenShards tokens = counted(103);  // 20 windows of 5, and two tokens left over
  Tokens flat(103);                         // the same in memory
  std::iota(flat.begin(), flat.end(), 0);
  EXPECT_EQ(window_count(tokens, 5), 20);
  EXPECT_EQ(window_count(flat, 5), 20);
  const BatchOptions options{.rows = 3, .length = 5, .seed = 4};
  std::vector<Index> places;
  for (std::uint64_t number = 0; number < 20; ++number) {  // three epochs; batches reach over their ends
    const std::vector<Index> some = shuffled_places(tokens, options, number);
    places.insert(places.end(), some.begin(), some.end());
    const Batch batch = shuffled_batch(ctx, tokens, options, number);
    const auto own = batch.tokens.to_vector<std::int32_t>(), next = batch.targets.to_vector<std::int32_t>();
    const Batch in_memory = shuffled_batch(ctx, flat, options, number);
    EXPECT_EQ(in_memory.tokens.to_vector<std::int32_t>(), own);
    EXPECT_EQ(in_memory.targets.to_vector<std::int32_t>(), next);
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i], some[i / 5] + static_cast<Index>(i % 5));
      EXPECT_EQ(next[i], own[i] + 1);
    }
  }
  std::vector<std::vector<Index>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    epochs.emplace_back(places.begin() + epoch * 20, places.begin() + epoch * 20 + 20);
    std::vector<Index> sorted = epochs.back();
    std::sort(sorted.begin(), sorted.end());
    for (Index i = 0; i < 20; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i * 5);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(shuffled_places(tokens, options, 0),
            shuffled_places(tokens, {.rows = 3, .length = 5, .seed = 5}, 0));
}

TEST_F(Batches, AtRandomPlacesAreThoseOfAFlatText) {
  const TokenShards tokens = counted(100);
  const Batch a = random_batch(ctx, tokens, 4, 6, 7, 11),
              b = random_batch(ctx, tokens.read(0, 100), 4, 6, 7, 11);
  EXPECT_EQ(a.tokens.to_vector<std::int32_t>(), b.tokens.to_vector<std::int32_t>());
  EXPECT_EQ(a.targets.to_vector<std::int32_t>(), b.targets.to_vector<std::int32_t>());
  EXPECT_FALSE(a.documents.defined());
}

TEST_F(Batches, OfPackedDocumentsTellThemApart) {
  const TokenShards tokens = shards({{1, 2}, {}, {3, 4, 5}, {6}});  // 1 2 E E 3 4 5 E 6 E
  const Batch batch = packed_batch(ctx, tokens, {.rows = 1, .length = 9}, 0);
  EXPECT_EQ(batch.tokens.to_vector<std::int32_t>(), (Tokens{1, 2, kEnd, kEnd, 3, 4, 5, kEnd, 6}));
  EXPECT_EQ(batch.targets.to_vector<std::int32_t>(), (Tokens{2, kEnd, kEnd, 3, 4, 5, kEnd, 6, kEnd}));
  EXPECT_EQ(batch.documents.to_vector<std::int32_t>(), (Tokens{0, 0, 0, 1, 2, 2, 2, 2, 3}));
  EXPECT_EQ(batch.positions.to_vector<std::int32_t>(), (Tokens{0, 1, 2, 0, 0, 1, 2, 3, 0}));
  // Windows of four: the second begins in the middle of nothing, the first ends in it.
  const Batch two = packed_batch(ctx, tokens, {.rows = 2, .length = 4, .seed = 3}, 0);
  const auto places = shuffled_places(tokens, {.rows = 2, .length = 4, .seed = 3}, 0);
  const auto documents = two.documents.to_vector<std::int32_t>();
  const std::size_t first = places[0] == 0 ? 0 : 4;
  EXPECT_EQ(Tokens(documents.begin() + static_cast<std::ptrdiff_t>(first),
                   documents.begin() + static_cast<std::ptrdiff_t>(first) + 4),
            (Tokens{0, 0, 0, 1}));
  EXPECT_THROW(packed_batch(ctx, counted(10), {.rows = 1, .length = 2}, 0), Error);
}

TEST_F(Batches, OfPackedDocumentsAttendWithinThem) {
  const TokenShards tokens = shards({{1, 2, 3}, {4, 5}});  // 1 2 3 E 4 5 E
  const Batch batch = packed_batch(ctx, tokens, {.rows = 1, .length = 6}, 0);
  const Tensor x = ctx.randn({1, 1, 6, 4});
  const Tensor together =
      attention(x, x, x, {.mask = all_of({causal_mask(), document_mask(batch.documents)})});
  const auto alone = [&](Index begin, Index end) {
    const Tensor own = slice(x, 2, {begin, end});
    return attention(own, own, own, {.mask = causal_mask()});
  };
  const Tensor apart = concat({alone(0, 4), alone(4, 6)}, 2);
  const auto a = together.to_vector<float>(), b = apart.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  EXPECT_GT(max(abs(together - attention(x, x, x, {.mask = causal_mask()}))).item(), 1e-3);
}

TEST_F(Batches, OfTooFewTokensAreErrors) {
  const TokenShards tokens = counted(5);
  EXPECT_NO_THROW(shuffled_batch(ctx, tokens, {.rows = 2, .length = 4}, 0));
  EXPECT_THROW(shuffled_batch(ctx, tokens, {.rows = 2, .length = 5}, 0), Error);
  EXPECT_THROW(shuffled_batch(ctx, tokens, {.rows = 0, .length = 2}, 0), Error);
  EXPECT_THROW(shuffled_batch(ctx, tokens, {.rows = 2, .length = 0}, 0), Error);
  EXPECT_THROW(random_batch(ctx, tokens, 1, 5, 0, 0), Error);
}

}  // namespace
}  // namespace tilewright::nn
