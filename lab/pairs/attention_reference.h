// What the pairs around attention share in float64: their sizes, which keys a query sees, and the result by
// plain loops with what it may be off by.
#pragma once

#include "pairs/error_scale.h"
#include "pairs/product.h"

namespace tilewright::lab {

struct AttentionSizes {
  Index batch, heads, kv_heads, queries, keys, depth;

  double scale() const { return 1 / std::sqrt(static_cast<double>(depth)); }
  Index heads_sharing() const {
    return heads / kv_heads;
  }  // query heads, one after another, on one of k and v
  Shape of_queries() const { return {batch, heads, queries, depth}; }
  Shape of_keys() const { return {batch, kv_heads, keys, depth}; }
};

// The keys that a query attends to, begin <= j < end: every mask of the lab leaves one range.
struct KeyRange {
  Index begin = 0, end = 0;
  Index count() const { return end - begin; }
};
using SeenKeys = std::vector<KeyRange>;  // of each query of a sequence, in every head alike

// 4 FLOPs for each query, key it attends to, head and element of depth. `seen`: one for all sequences, or one
// for each.
double attention_flops(const AttentionSizes& s, std::span<const SeenKeys> seen);

// What a reference may take at most, about 10 s of 16 cores: beyond it knows some blocks of queries only.
inline constexpr double kMostReferenceFlops = 5e11;

// What becomes of scores and weights on the way: how often a score is rounded as the output is, in which
// units of that rounding a weight is; how far off a weight may be beside this where the largest is 1; and
// what tensor cores lose of the products' sums.
struct WeightRounding {
  double scores = 2, weight = 1, least = 0, kept = 0;
};
// Weights of 8-bit floats, 2^k times as large as they are so that the type's range is used, for outputs of
// type `out`.
WeightRounding rounding_of_f8(DType dtype, DType out);

// The reference of y from inputs q, k, v. `scale` is the output's; `seen`: one for all sequences, or one for
// each.
std::vector<Reference> attention_reference(const HostArrays& in, const AttentionSizes& s,
                                           std::span<const SeenKeys> seen, const ErrorScale& scale,
                                           ThreadPool& pool, double most_flops = kMostReferenceFlops,
                                           const WeightRounding& rounding = {});

// --- the parts, for references of what is made of attention

// Queries [first, first + count) of one head, and the keys that they see together.
struct QueryBlock {
  Index first = 0, count = 0;
  KeyRange keys;
};
inline constexpr Index kQueriesAtOnce = 64;  // a block's scores stay in the cache for a few thousand keys
QueryBlock query_block(const SeenKeys& seen, Index block);

// The weights pᵢⱼ of a block of queries (count, keys), and the squares of how far off each may be, in the
// unit of `scale`. A weight outside a query's own range is 0.
struct BlockWeights {
  HostArray p, squared_errors;
};
// `queries`: the block's own; `keys_transposed` (D, K) and its column norms (K) are of the whole head.
BlockWeights block_weights(const double* queries, const HostArray& keys_transposed,
                           const HostArray& key_norms, const QueryBlock& block, const AttentionSizes& s,
                           const SeenKeys& seen, const ErrorScale& scale,
                           const WeightRounding& rounding = {});

double euclidean_norm(std::span<const double> v);

}  // namespace tilewright::lab
