// What files say of byte-level BPE tokenizers: tokenizer.json (Hugging Face's tokenizers) and tiktoken's
// lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::formats {

// The library whose regular expressions a pattern is written in: they read `$` and `{1,3}+` differently.
enum class PatternDialect { tiktoken, tokenizers };

struct SplitPattern {
  std::string text;
  PatternDialect dialect = PatternDialect::tokenizers;
};

// Two neighbours that become one token; those of the lowest rank first, of equal ones the leftmost.
struct Merge {
  std::uint32_t left, right, result, rank;
};

struct AddedToken {
  std::string text;
  std::uint32_t token;
  bool special = true;
  bool normalized = false;  // found in what is left when all others were
};

struct TokenizerFile {
  std::vector<std::string> tokens;  // bytes by number; empty where a number has none
  std::vector<Merge> merges;
  bool whole_pieces = false;         // a piece that is a token is not put together by merges
  bool space_first = false;          // a text that begins with no space gets one
  std::vector<SplitPattern> splits;  // one after the other: each cuts what the one before left
  std::vector<AddedToken> added = {};
};

// The largest number of a token is below this: eight times the largest vocabularies there are.
inline constexpr std::uint32_t kMostTokens = 1U << 21;

// Throws Error: malformed, or a kind of tokenizer that is no byte-level BPE, with the field that says so.
TokenizerFile parse_tokenizer_json(std::string_view text);
// Lines of a token in base64, a space, its rank, which is its number. Without splits, which such a file
// leaves open. Throws Error with the line.
TokenizerFile parse_tiktoken(std::string_view text);

}  // namespace tilewright::formats
