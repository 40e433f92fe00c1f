// Text as tokens in files: a folder of shards is one sequence of tokens, which is mapped into memory and not
// read until it is looked at. Documents follow each other with an end-of-text token behind each.
//
// A shard is a header of 64 bytes, then its tokens; all numbers are little-endian:
//   0   8 bytes  "TWTOKENS"
//   8   u32      version, 1
//   12  u32      bytes of a token, 2 or 4, unsigned
//   16  u64      count of tokens
//   24  u32      vocabulary: every token is below
//   28  u32      the end-of-text token; 2^32 - 1 where there is none
//   32  2 u64    XXH3-128 of the bytes of all tokens, the low half first
//   48  u64      how many of them are end-of-text tokens
//   56  u64      the low half of XXH3-128 of the 56 bytes before
#pragma once

#include <tilewright/base/hash.h>
#include <tilewright/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// A handle; several threads may read from one at once. Files stay mapped as long as one is there.
class TokenShards {
 public:
  // A shard, or the files of a folder that end in ".tokens", in the order of their names. Throws Error where
  // there are none, where one's length is not what its header says or its header is damaged, and where two
  // differ in vocabulary or end-of-text token.
  explicit TokenShards(const std::string& path, const Location& where = Location::current());
  Index size() const;                               // tokens in all
  Index files() const;                              // shards
  Index vocabulary() const;                         // every token is below
  std::optional<std::int32_t> end_of_text() const;  // what stands behind each document
  Index documents() const;                          // end-of-text tokens in all
  // Tells shards from others without reading them: made of what the files' headers say, checksums among it.
  Hash128 checksum() const;
  // Tokens first … first + count - 1. Throws Error where they are not all there, and on a token past the
  // vocabulary, with its file and place.
  std::vector<std::int32_t> read(Index first, Index count, const Location& where = Location::current()) const;
  // Reads everything. Throws Error, naming the file, where the tokens are not those that were written.
  void verify(const Location& where = Location::current()) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

struct TokenShardOptions {
  std::string folder = {};                       // made where it is not there
  Index vocabulary = 0;                          // up to 65536, tokens have two bytes in the files
  std::optional<std::int32_t> end_of_text = {};  // put behind each document
  Index shard_tokens = 100'000'000;              // of a file; the last one has what is left
};

// Writes "00000.tokens", "00001.tokens" …: each is written under another name beside, and gets its own when
// it is whole. Not for two threads at once.
class TokenShardWriter {
 public:
  // Throws Error on numbers that make no shards, and where the folder has shards already.
  explicit TokenShardWriter(const TokenShardOptions& options, const Location& where = Location::current());
  ~TokenShardWriter();  // without finish(), the shard that was not full is gone
  TokenShardWriter(TokenShardWriter&& from) noexcept;
  // A document; one may go over from a shard to the next. Throws Error on a token past the vocabulary, and
  // where the file cannot be written.
  void add(const std::vector<std::int32_t>& document, const Location& where = Location::current());
  // No more follows. Throws Error where nothing was added, and where the file cannot be written.
  void finish(const Location& where = Location::current());
  Index tokens() const;  // so far, with those behind the documents

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
