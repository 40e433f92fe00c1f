// Token shards: what was written is read over the ends of files, and damage is found.
#include <gtest/gtest.h>

#include <tilewright/nn/token_shards.h>

#include <numeric>

#include "formats/files.h"
#include "nn/token_shard_header.h"

namespace tilewright::nn {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Shards : testing::Test {
  test::Folder folder;
  std::string written(const TokenShardOptions& options, const std::vector<Tokens>& documents) const {
    TokenShardOptions own = options;
    own.folder = folder.file("shards");
    TokenShardWriter writer(own);
    for (const Tokens& document : documents) writer.add(document);
    writer.finish();
    return own.folder;
  }
  std::string one_shard() const {
    return test::read_file(written({.vocabulary = 100, .end_of_text = 99}, {{1, 2, 3}, {4}}) +
                           "/00000.tokens");
  }
  std::string error_of(const std::string& bytes) const {
    try {
      const TokenShards shards(folder.with("x.tokens", bytes));
      shards.verify();
      (void)shards.read(0, shards.size());
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(Shards, AreOneSequenceOverTheEndsOfFiles) {
  for (const Index vocabulary : {Index{1} << 16, Index{200'000}}) {
    test::Folder own;
    const auto end = static_cast<std::int32_t>(vocabulary - 1);
    TokenShardWriter writer(
        {.folder = own.file("a/b"), .vocabulary = vocabulary, .end_of_text = end, .shard_tokens = 7});
    Tokens all;
    for (int document = 0; document < 5; ++document) {
      Tokens tokens(static_cast<std::size_t>(document * 2));
      std::iota(tokens.begin(), tokens.end(), 1000 * document);
      writer.add(tokens);
      all.insert(all.end(), tokens.begin(), tokens.end());
      all.push_back(end);
    }
    writer.finish();
    EXPECT_EQ(writer.tokens(), 25);
    const TokenShards shards(own.file("a/b"));
    EXPECT_EQ(shards.size(), 25);
    EXPECT_EQ(shards.files(), 4);
    EXPECT_EQ(shards.documents(), 5);
    EXPECT_EQ(shards.vocabulary(), vocabulary);
    EXPECT_EQ(shards.end_of_text(), end);
    for (Index first = 0; first <= 25; ++first)
      for (Index count = 0; count <= 25 - first; ++count)
        EXPECT_EQ(shards.read(first, count), Tokens(all.begin() + first, all.begin() + first + count));
    EXPECT_THROW(shards.read(0, 26), Error);
    EXPECT_THROW(shards.read(-1, 2), Error);
    shards.verify();
    EXPECT_EQ(TokenShards(own.file("a/b/00003.tokens")).size(), 4);
    const auto bytes = std::filesystem::file_size(own.file("a/b/00000.tokens"));
    EXPECT_EQ(bytes, 64U + 7 * (vocabulary > 1 << 16 ? 4 : 2));
  }
}

TEST_F(Shards, TakeTheirNamesWhenTheyAreWhole) {
  {
    TokenShardWriter writer({.folder = folder.file("s"), .vocabulary = 10, .shard_tokens = 4});
    writer.add({1, 2, 3, 4, 5, 6});
  }
  EXPECT_EQ(TokenShards(folder.file("s")).size(), 4);  // the second was never finished
  EXPECT_EQ(TokenShards(folder.file("s")).end_of_text(), std::nullopt);
  EXPECT_THROW(TokenShardWriter({.folder = folder.file("s"), .vocabulary = 10}), Error);
}

TEST_F(Shards, OfDamagedFilesSayWhatIsWrong) {
  const std::string good = one_shard();
  EXPECT_EQ(error_of(good), "no error");
  // A header that was made by somebody else is whole, and lies.
  const auto lying = [&](auto change) {
    TokenShardHeader header = parse_token_shard(formats::bytes_of(good));
    change(header);
    return to_bytes(header) + good.substr(kShardHeaderBytes);
  };
  std::string flipped = good;
  flipped[17] ^= 4;
  std::string other_token = good;
  other_token[66] = 7;
  const std::pair<std::string, std::string> cases[] = {
      {good.substr(0, good.size() - 1), "11 bytes follow it: it is cut short"},
      {good + "x", "13 bytes follow it: it is cut short, or was added to"},
      {good.substr(0, 40), "it is cut short: its header would be 64 bytes"},
      {"", "it is no token shard"},
      {"TWTOKENX" + good.substr(8), "it is no token shard"},
      {"TWTOKENS\2" + good.substr(9), "of version 2, and this library reads version 1"},
      {flipped, "its header is damaged"},
      {other_token, "is damaged: the checksum of its tokens"},
      {lying([](auto& h) { h.width = 3; }), "3 bytes a token"},
      {lying([](auto& h) { h.vocabulary = 0; }), "a vocabulary of 0"},
      {lying([](auto& h) { h.vocabulary = 70'000; }), "tokens of 2 bytes go to 65536"},
      {lying([](auto& h) { h.end_of_text = 100; }), "the end-of-text token 100 in a vocabulary of 100"},
      {lying([](auto& h) { h.count = 5; }), "says 5 tokens of 2 bytes, and 12 bytes follow"},
      {lying([](auto& h) { h.count = ~std::uint64_t{0} / 2 + 7; }), "12 bytes follow"},
      {lying([](auto& h) { h.documents = 9; }), "9 documents in 6 tokens"},
      {lying([](auto& h) { h.vocabulary = 50, h.end_of_text.reset(); }),
       "x.tokens: token 3 is 99, past the vocabulary of 50"},
  };
  for (const auto& [bytes, part] : cases) {
    const std::string said = error_of(bytes);
    EXPECT_NE(said.find(part), std::string::npos) << said << "\n  lacks " << part;
  }
}

TEST_F(Shards, OfDifferentTokenizersAreNoSequence) {
  const std::string path = written({.vocabulary = 100, .end_of_text = 99}, {{1}});
  const std::string other = folder.file("other");
  TokenShardWriter writer({.folder = other, .vocabulary = 101, .end_of_text = 99});
  writer.add({1});
  writer.finish();
  std::filesystem::copy(other + "/00000.tokens", path + "/00001.tokens");
  EXPECT_THROW(TokenShards{path}, Error);
}

TEST_F(Shards, AreAskedForByNumbersThatMakeSense) {
  EXPECT_THROW(TokenShardWriter({.folder = folder.file("n"), .vocabulary = 0}), Error);
  EXPECT_THROW(TokenShardWriter({.folder = folder.file("n"), .vocabulary = 5, .end_of_text = 5}), Error);
  EXPECT_THROW(TokenShardWriter({.folder = folder.file("n"), .vocabulary = 5, .shard_tokens = 0}), Error);
  TokenShardWriter writer({.folder = folder.file("n"), .vocabulary = 5});
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_THROW(writer.add({1, 5}), Error);
  EXPECT_THROW(writer.add({-1}), Error);
  EXPECT_THROW(TokenShards(folder.file("nowhere")), Error);
  std::filesystem::create_directories(folder.file("d/train"));
  try {
    TokenShards shards(folder.file("d"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("it has folders: train"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tilewright::nn
