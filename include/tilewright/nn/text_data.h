// Text as tokens, and batches drawn from it by number: the batch of a step depends on the seed and the step
// alone, so that a training that is taken up again sees what it would have seen.
#pragma once

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

// tokens and, one place on, the targets: both i32 (rows, length).
struct Batch {
  Tensor tokens, targets;
};

// Rows of `length` tokens, from places that Philox draws of the seed and the number of the batch: with equal
// seeds the n-th batch is the same in every process. Throws Error where there are not more tokens than a row
// has.
Batch random_batch(Context& ctx, const std::vector<std::int32_t>& tokens, Index rows, Index length,
                   std::uint64_t seed, std::uint64_t number, const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
