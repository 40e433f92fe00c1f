// Byte-level BPE (Sennrich et al., 2016; on bytes as GPT-2 has it): text to tokens and back, by the files of
// Hugging Face's tokenizers and of tiktoken, with their results.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// A token that no text merges into: it stands for the whole of its own text, and only where it is asked for.
struct SpecialToken {
  std::string text;
  std::int32_t token = 0;
};

struct TokenizerOptions {
  // How text is cut before bytes are merged, for tiktoken files, which do not say it: "gpt2", "cl100k",
  // "o200k", or a regular expression as tiktoken takes it.
  std::string pattern = {};
  std::vector<SpecialToken> special = {};  // further ones; a tiktoken file has none
};

// Whether the text of a special token becomes that token, or is a text like any other.
enum class SpecialTokens { as_text, as_tokens };

// A handle; several threads may use one at once.
class Tokenizer {
 public:
  // One past the largest number of a token.
  Index size() const;
  // The tokens of a text. Bytes that are no UTF-8 become U+FFFD, one for each longest beginning of a
  // character, as Python's errors="replace" has it. No token is put in front or behind. Takes time
  // proportional to n log n at most. Throws Error where a byte has no token, and on texts of 4 GiB and more.
  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens special = SpecialTokens::as_text,
                                   const Location& where = Location::current()) const;
  // The bytes that the tokens stand for; UTF-8 where no character was cut. Throws Error on a number that is
  // no token's.
  std::string decode(const std::vector<std::int32_t>& tokens,
                     const Location& where = Location::current()) const;
  // The token that stands for exactly this text: a special one, or one of the vocabulary.
  std::optional<std::int32_t> find(std::string_view text) const;

 private:
  friend Tokenizer load_tokenizer(const std::string&, const TokenizerOptions&, const Location&);
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Reads a tokenizer.json or a tiktoken file. Of a tokenizer.json: a BPE model behind a ByteLevel
// pre-tokenizer, alone or after Split (by a regular expression or a text, Isolated) and Digits; added tokens.
// What puts tokens in front of a text or cuts and pads it (post_processor, truncation, padding) is left to
// the caller. Throws Error where the file is malformed, and naming the field where it is of another kind.
Tokenizer load_tokenizer(const std::string& path, const TokenizerOptions& options = {},
                         const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
