// The header of a token shard, as token_shards.h describes it.
#pragma once

#include <tilewright/base/hash.h>

#include <cstdint>
#include <optional>
#include <string>

#include "formats/bytes.h"

namespace tilewright::nn {

inline constexpr std::uint64_t kShardHeaderBytes = 64;

struct TokenShardHeader {
  std::uint32_t width = 0;  // bytes of a token: 2 or 4
  std::uint64_t count = 0;
  std::uint32_t vocabulary = 0;
  std::optional<std::uint32_t> end_of_text = {};
  Hash128 checksum = {};
  std::uint64_t documents = 0;
};

std::string to_bytes(const TokenShardHeader& header);
// Throws Error where this is no shard, or not all of one.
TokenShardHeader parse_token_shard(formats::Bytes file);

}  // namespace tilewright::nn
