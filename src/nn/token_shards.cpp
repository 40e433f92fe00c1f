// Token shards, read: mapped files behind each other.
#include <tilewright/nn/token_shards.h>

#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "nn/token_shard_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tilewright::nn {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEnding = ".tokens";

struct Shard {
  std::string path;
  std::shared_ptr<const formats::MappedFile> file;
  TokenShardHeader header;
  std::uint64_t begin;  // its first token's number in the sequence

  formats::Bytes tokens() const { return file->bytes().subspan(kShardHeaderBytes); }
};

std::vector<std::string> shard_paths(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> paths;
  std::string folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error))
      folders += (folders.empty() ? "" : ", ") + entry.path().filename().string();
    else if (entry.path().extension() == kEnding)
      paths.push_back(entry.path().string());
  }
  if (error) throw Error(fmt::format("it cannot be read: {}", error.message()));
  if (paths.empty())
    throw Error(fmt::format("the folder has no files that end in {}{}", kEnding,
                            folders.empty() ? "" : "; it has folders: " + folders));
  std::sort(paths.begin(), paths.end());
  return paths;
}

template <class T>
void append_tokens(const Shard& shard, std::uint64_t first, std::uint64_t count,
                   std::vector<std::int32_t>& to) {
  const std::byte* from = shard.tokens().data() + first * sizeof(T);
  for (std::uint64_t i = 0; i < count; ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof token);
    if (token >= shard.header.vocabulary)
      throw Error(
          fmt::format("read: {}: token {} is {}, past the vocabulary of {}: the file is damaged, or "
                      "was made by another tokenizer",
                      shard.path, first + i, token, shard.header.vocabulary));
    to.push_back(static_cast<std::int32_t>(token));
  }
}

}  // namespace

struct TokenShards::Impl {
  std::vector<Shard> shards;  // at least one
  std::uint64_t size = 0, documents = 0;
};

TokenShards::TokenShards(const std::string& path, const Location& where) {
  auto impl = std::make_shared<Impl>();
  const std::vector<std::string> paths =
      formats::in_file("TokenShards", path, where, [&] { return shard_paths(path); });
  for (const std::string& one : paths)
    formats::in_file("TokenShards", one, where, [&] {
      Shard shard{.path = one, .file = formats::MappedFile::open(one), .header = {}, .begin = impl->size};
      shard.header = parse_token_shard(shard.file->bytes());
      const TokenShardHeader& first = impl->shards.empty() ? shard.header : impl->shards.front().header;
      if (shard.header.vocabulary != first.vocabulary || shard.header.end_of_text != first.end_of_text)
        throw Error(
            fmt::format("its vocabulary of {} or its end-of-text token is not that of {}, {}: both are of "
                        "different tokenizers",
                        shard.header.vocabulary, impl->shards.front().path, first.vocabulary));
      impl->size += shard.header.count;
      impl->documents += shard.header.documents;
      impl->shards.push_back(std::move(shard));
    });
  impl_ = std::move(impl);
}

Index TokenShards::size() const { return static_cast<Index>(impl_->size); }
Index TokenShards::files() const { return static_cast<Index>(impl_->shards.size()); }
Index TokenShards::vocabulary() const { return static_cast<Index>(impl_->shards.front().header.vocabulary); }
Index TokenShards::documents() const { return static_cast<Index>(impl_->documents); }
Hash128 TokenShards::checksum() const {
  Hasher hasher;
  for (const Shard& shard : impl_->shards)
    hasher.add(shard.header.checksum).add(shard.header.count).add(shard.header.vocabulary);
  return hasher.digest();
}
std::optional<std::int32_t> TokenShards::end_of_text() const {
  const std::optional<std::uint32_t> token = impl_->shards.front().header.end_of_text;
  return token ? std::optional(static_cast<std::int32_t>(*token)) : std::nullopt;
}

std::vector<std::int32_t> TokenShards::read(Index first, Index count, const Location& where) const {
  if (first < 0 || count < 0 || first > size() || count > size() - first)
    throw Error(fmt::format("read: {} tokens from {} on, of {} in all", count, first, size()), where);
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  auto at = static_cast<std::uint64_t>(first);
  auto left = static_cast<std::uint64_t>(count);
  auto shard = std::upper_bound(impl_->shards.begin(), impl_->shards.end(), at,
                                [](std::uint64_t place, const Shard& s) { return place < s.begin; }) -
               1;
  try {
    for (; left > 0; ++shard) {
      const std::uint64_t some = std::min(left, shard->begin + shard->header.count - at);
      if (shard->header.width == 2)
        append_tokens<std::uint16_t>(*shard, at - shard->begin, some, tokens);
      else
        append_tokens<std::uint32_t>(*shard, at - shard->begin, some, tokens);
      at += some;
      left -= some;
    }
  } catch (const Error& e) {
    throw Error(e.what(), where);
  }
  return tokens;
}

void TokenShards::verify(const Location& where) const {
  for (const Shard& shard : impl_->shards)
    if (const Hash128 now = hash_bytes(formats::text(shard.tokens())); now != shard.header.checksum)
      throw Error(fmt::format("verify: {} is damaged: the checksum of its tokens is {}, and was {} when they "
                              "were written",
                              shard.path, to_hex(now), to_hex(shard.header.checksum)),
                  where);
}

}  // namespace tilewright::nn
