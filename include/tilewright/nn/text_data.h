// A text's bytes as tokens; tokenizer.h has larger ones, and batches.h makes batches of them.
#pragma once

#include <tilewright/nn/batches.h>
#include <tilewright/tensor/tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// The bytes of a text, each different one a token, in ascending order.
class ByteVocabulary {
 public:
  ByteVocabulary() = default;
  // The vocabulary of the bytes that occur in the text.
  explicit ByteVocabulary(std::string_view text);
  Index size() const { return static_cast<Index>(bytes_.size()); }
  std::string bytes() const { return bytes_; }  // by token
  // Throws Error on a byte that is none of the vocabulary's, with its place.
  std::vector<std::int32_t> encode(std::string_view text, const Location& where = Location::current()) const;
  // Throws Error on a number that is no token's.
  std::string decode(const std::vector<std::int32_t>& tokens,
                     const Location& where = Location::current()) const;

 private:
  std::string bytes_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
