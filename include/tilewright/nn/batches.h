// Batches by number: what is in one depends on the data, the seed and its number alone, so that a training
// that is taken up again sees what it would have seen, and several processes can take turns.
#pragma once

#include <tilewright/nn/token_shards.h>
#include <tilewright/tensor/tensor.h>

#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// tokens and, one place on, the targets: both i32 (rows, length). Of packed_batch() the number of each
// token's document within its row, from 0, and its place in that document as well, i32 (rows, length): what
// document_mask() takes, and what positions are looked up by.
struct Batch {
  Tensor tokens, targets;
  Tensor documents = {}, positions = {};  // undefined where documents do not count
};

// Rows of `length` tokens, from places that Philox draws of the seed and the number of the batch: with equal
// seeds the n-th batch is the same in every process. Throws Error where there are not more tokens than a row
// has.
Batch random_batch(Context& ctx, const std::vector<std::int32_t>& tokens, Index rows, Index length,
                   std::uint64_t seed, std::uint64_t number, const Location& where = Location::current());
Batch random_batch(Context& ctx, const TokenShards& tokens, Index rows, Index length, std::uint64_t seed,
                   std::uint64_t number, const Location& where = Location::current());

struct BatchOptions {
  Index rows = 1, length = 1;
  std::uint64_t seed = 0;  // of the order
};

// The windows of `length` tokens, side by side from the first token on, each with the token that follows it.
// What is left at the end is in none.
Index window_count(const TokenShards& tokens, Index length);
Index window_count(const std::vector<std::int32_t>& tokens, Index length);
// The first token of each row of a batch of shuffled windows. Rows are counted through all batches and
// epochs: row k is the window that stands at k mod n in the Permutation of all n windows by the seed and the
// epoch k / n, so that each window comes once per epoch. Throws Error where there is no window.
std::vector<Index> shuffled_places(const TokenShards& tokens, const BatchOptions& options,
                                   std::uint64_t number, const Location& where = Location::current());
// The windows at these places. Throws Error where there is no window, and as TokenShards::read().
Batch shuffled_batch(Context& ctx, const TokenShards& tokens, const BatchOptions& options,
                     std::uint64_t number, const Location& where = Location::current());
Batch shuffled_batch(Context& ctx, const std::vector<std::int32_t>& tokens, const BatchOptions& options,
                     std::uint64_t number, const Location& where = Location::current());
// The same rows, as documents behind each other: each ends with its end-of-text token, and the parts that a
// window's ends cut off are documents of their own. Throws Error where the shards name no such token.
Batch packed_batch(Context& ctx, const TokenShards& tokens, const BatchOptions& options, std::uint64_t number,
                   const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
