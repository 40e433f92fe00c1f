// Writing and reading headers of token shards.
#include "nn/token_shard_header.h"

#include <limits>

namespace tilewright::nn {

namespace {

using formats::append;
using formats::number;

constexpr std::string_view kMagic = "TWTOKENS";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kNoToken = 0xFFFFFFFF;
constexpr std::uint64_t kSumAt = 56;  // of the header itself

}  // namespace

std::string to_bytes(const TokenShardHeader& header) {
  std::string bytes(kMagic);
  append<std::uint32_t>(bytes, kVersion);
  append(bytes, header.width);
  append(bytes, header.count);
  append(bytes, header.vocabulary);
  append(bytes, header.end_of_text.value_or(kNoToken));
  append(bytes, header.checksum.low);
  append(bytes, header.checksum.high);
  append(bytes, header.documents);
  append(bytes, hash_bytes(bytes).low);
  return bytes;
}

TokenShardHeader parse_token_shard(formats::Bytes file) {
  if (!formats::text(file).starts_with(kMagic))
    throw Error("it is no token shard: it does not begin with \"TWTOKENS\"");
  const formats::Bytes header = formats::part(file, 0, kShardHeaderBytes, "its header");
  const auto u32 = [&](std::uint64_t at) { return number<std::uint32_t>(header, at, "its header"); };
  const auto u64 = [&](std::uint64_t at) { return number<std::uint64_t>(header, at, "its header"); };
  if (u32(8) != kVersion)
    throw Error(fmt::format("it is a token shard of version {}, and this library reads version {}", u32(8),
                            kVersion));
  if (hash_bytes(formats::text(header.first(kSumAt))).low != u64(kSumAt))
    throw Error("its header is damaged: the checksum is another");
  TokenShardHeader read{.width = u32(12),
                        .count = u64(16),
                        .vocabulary = u32(24),
                        .end_of_text = {},
                        .checksum = {.high = u64(40), .low = u64(32)},
                        .documents = u64(48)};
  if (u32(28) != kNoToken) read.end_of_text = u32(28);
  if (read.width != 2 && read.width != 4)
    throw Error(fmt::format("its header says {} bytes a token, which are 2 or 4", read.width));
  const std::uint64_t most = read.width == 2 ? 1U << 16 : std::numeric_limits<std::int32_t>::max();
  if (read.vocabulary == 0 || read.vocabulary > most)
    throw Error(fmt::format("its header says a vocabulary of {}, and tokens of {} bytes go to {}",
                            read.vocabulary, read.width, most));
  if (read.end_of_text && *read.end_of_text >= read.vocabulary)
    throw Error(fmt::format("its header says the end-of-text token {} in a vocabulary of {}",
                            *read.end_of_text, read.vocabulary));
  const std::uint64_t behind = file.size() - kShardHeaderBytes;
  if (read.count != behind / read.width || behind % read.width != 0)
    throw Error(
        fmt::format("its header says {} tokens of {} bytes, and {} bytes follow it: it is cut short, "
                    "or was added to",
                    read.count, read.width, behind));
  if (read.documents > read.count)
    throw Error(fmt::format("its header says {} documents in {} tokens", read.documents, read.count));
  return read;
}

}  // namespace tilewright::nn
