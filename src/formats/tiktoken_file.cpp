// tiktoken's lists of tokens. They name no merges: two neighbours merge where both together are a token.
#include "formats/tokenizer_file.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <unordered_map>

namespace tilewright::formats {

namespace {

// The longest token that is read; of the published lists it has 128 bytes. All its cuts are looked up.
constexpr std::size_t kLongestToken = 4096;

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = i < text.size() - padding ? base64_digit(text[i]) : 0;
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(bits >> shift & 0xFF));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

struct RankedToken {
  std::string bytes;
  std::uint32_t rank;
};

RankedToken ranked_token(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) throw Error("it has no space between a token and its rank");
  std::optional<std::string> bytes = from_base64(line.substr(0, space));
  if (!bytes) throw Error("its token is no base64");
  if (bytes->size() > kLongestToken)
    throw Error(fmt::format("its token has {} bytes, and may have {}", bytes->size(), kLongestToken));
  const std::string_view digits = line.substr(space + 1);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc{} || end != digits.data() + digits.size() || rank >= kMostTokens)
    throw Error(fmt::format("its rank is no number below {}", kMostTokens));
  return {*std::move(bytes), rank};
}

}  // namespace

TokenizerFile parse_tiktoken(std::string_view text) {
  TokenizerFile read{.tokens = {}, .merges = {}, .whole_pieces = true, .space_first = false, .splits = {}};
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      RankedToken token = ranked_token(line);
      if (token.rank >= read.tokens.size()) read.tokens.resize(token.rank + 1);
      std::string& place = read.tokens[token.rank];
      if (!place.empty()) throw Error(fmt::format("rank {} stands before it, too", token.rank));
      place = std::move(token.bytes);
    } catch (const Error& e) {
      throw Error(fmt::format("line {} is no line of a tiktoken file: {}", number, e.what()));
    }
  }
  if (read.tokens.empty()) throw Error("it has no tokens");
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (std::uint32_t token = 0; token < read.tokens.size(); ++token) {
    if (read.tokens[token].empty()) continue;
    const auto [other, is_new] = numbers.emplace(read.tokens[token], token);
    if (!is_new) throw Error(fmt::format("ranks {} and {} are the same bytes", other->second, token));
  }
  for (std::uint32_t token = 0; token < read.tokens.size(); ++token) {
    const std::string_view bytes = read.tokens[token];
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = numbers.find(bytes.substr(0, cut)), right = numbers.find(bytes.substr(cut));
      if (left != numbers.end() && right != numbers.end())
        read.merges.push_back({left->second, right->second, token, token});
    }
  }
  return read;
}

}  // namespace tilewright::formats
