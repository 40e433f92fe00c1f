// Blocks of queries of one head against the keys that they see.
#include "pairs/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace tilewright::lab {

namespace {

// One head of k and v in the forms that the loops take.
struct Head {
  HostArray keys_transposed;  // (D, K)
  HostArray key_norms;        // (K)
  HostArray squared_values;   // (K, D)
};

Head prepare(const double* keys, const double* values, const AttentionSizes& s) {
  Head head{.keys_transposed = host_transpose(keys, s.keys, s.depth, s.depth),
            .squared_values = HostArray(values, values + s.keys * s.depth)};
  head.key_norms = column_norms(head.keys_transposed.data(), s.depth, s.keys);
  for (double& v : head.squared_values) v *= v;
  return head;
}

// Makes one query's weights pⱼ, and the square of each one's error, of its dot products with the keys that it
// sees. `score_sizes`: what each dot product, scaled, sums.
void weigh(std::span<double> p, std::span<double> squared_errors, std::span<const double> score_sizes,
           const ErrorScale& scale, const WeightRounding& rounding, double factor) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double& v : p) largest = std::max(largest, v *= factor);
  for (std::size_t j = 0; j < p.size(); ++j) {
    // Stored: the dot product, the score, the weight. Computed: the dot product, the difference that exp
    // takes, exp.
    squared_errors[j] = scale.term(rounding.scores * std::fabs(p[j]) + rounding.weight,
                                   score_sizes[j] + (largest - p[j]) + 1) +
                        scale.of(rounding.kept * score_sizes[j]);
    p[j] = std::exp(p[j] - largest);
    sum += p[j];
  }
  for (std::size_t j = 0; j < p.size(); ++j) {
    p[j] /= sum;
    const double error = p[j] * squared_errors[j] + scale.of(rounding.least) / sum;
    squared_errors[j] = error * error;
  }
}

struct BlockResult {
  double *to, *magnitude;  // (count, D)
};

// `magnitude` comes with Σ εⱼ² vⱼ², where weight j is off by εⱼ = pⱼ δⱼ. With the weights' sum, which is off
// as they are, the result y moves by Σ εⱼ (vⱼ − y), whose square is at most 2 (Σ εⱼ² vⱼ² + y² Σ εⱼ²).
void finish_row(std::span<const double> y, std::span<double> magnitude, std::span<const double> p,
                std::span<const double> squared_errors, const HostArray& value_norms, const ErrorScale& scale,
                const WeightRounding& rounding) {
  const double of_sum = std::accumulate(squared_errors.begin(), squared_errors.end(), 0.0);
  const double length = euclidean_norm(p);
  for (std::size_t d = 0; d < y.size(); ++d) {
    magnitude[d] = std::sqrt(2 * (magnitude[d] + y[d] * y[d] * of_sum)) +
                   scale(std::fabs(y[d]), length * value_norms[d]) +
                   scale.of(rounding.kept * length * value_norms[d]);
  }
}

void attend(const QueryBlock& block, const double* queries, const double* values, const Head& head,
            const AttentionSizes& s, const SeenKeys& seen, const ErrorScale& scale,
            const WeightRounding& rounding, const BlockResult& result) {
  const Index d = s.depth, keys = block.keys.count(), from = block.keys.begin * d;
  const BlockWeights w =
      block_weights(queries, head.keys_transposed, head.key_norms, block, s, seen, scale, rounding);
  host_matmul({w.p.data(), values + from, result.to, block.count, d, keys, keys, d, d});
  host_matmul({w.squared_errors.data(), head.squared_values.data() + from, result.magnitude, block.count, d,
               keys, keys, d, d});
  const HostArray value_norms = column_norms(values + from, keys, d);
  const auto depth = static_cast<std::size_t>(d);
  for (Index i = 0; i < block.count; ++i) {
    finish_row({result.to + i * d, depth}, {result.magnitude + i * d, depth}, row_of(w.p, i, keys),
               row_of(w.squared_errors, i, keys), value_norms, scale, rounding);
  }
}

// About `share` of the jobs, the first and the last among them; empty: all. Which ones hangs on the data,
// which is new in each round.
std::vector<bool> some_of(Index jobs, double share, const HostArray& data) {
  if (!(share < 1)) return {};
  std::mt19937_64 random(digest(data.data(), std::min<std::size_t>(data.size(), 1024) * sizeof(double)));
  std::vector<bool> taken(static_cast<std::size_t>(jobs));
  for (auto job = taken.begin(); job != taken.end(); ++job)
    *job = static_cast<double>(random() >> 11) * 0x1p-53 < share;
  taken.front() = taken.back() = true;
  return taken;
}

KnownRows known_rows(const std::vector<bool>& blocks, const AttentionSizes& s) {
  KnownRows known{.length = s.depth};
  const Index each = ceil_div(s.queries, kQueriesAtOnce);
  for (Index h = 0; !blocks.empty() && h < s.batch * s.heads; ++h)
    for (Index q = 0; q < s.queries; ++q)
      known.rows.push_back(blocks[static_cast<std::size_t>(h * each + q / kQueriesAtOnce)]);
  return known;
}

}  // namespace

WeightRounding rounding_of_f8(DType dtype, DType out) {
  // Tensor cores align what they add to the largest term and keep about 14 bits.
  constexpr double kKept = 0x1p-13;
  const double largest = std::exp2(std::floor(std::log2(max_finite(dtype))));
  // Half of the smallest step, which is that of the smallest normal number.
  const double least = min_normal(dtype) * unit_roundoff(dtype) / largest;
  return {.scores = 0, .weight = unit_roundoff(dtype) / unit_roundoff(out), .least = least, .kept = kKept};
}

double attention_flops(const AttentionSizes& s, std::span<const SeenKeys> seen) {
  double pairs = 0;
  for (const SeenKeys& of_sequence : seen)
    for (const KeyRange& keys : of_sequence) pairs += static_cast<double>(keys.count());
  pairs *= static_cast<double>(s.batch) / static_cast<double>(seen.size());
  return 4 * static_cast<double>(s.heads * s.depth) * pairs;
}

double euclidean_norm(std::span<const double> v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

QueryBlock query_block(const SeenKeys& seen, Index block) {
  QueryBlock b{.first = block * kQueriesAtOnce};
  b.count = std::min(kQueriesAtOnce, static_cast<Index>(seen.size()) - b.first);
  b.keys = seen[static_cast<std::size_t>(b.first)];
  for (Index i = b.first; i < b.first + b.count; ++i) {
    const KeyRange& keys = seen[static_cast<std::size_t>(i)];
    b.keys = {std::min(b.keys.begin, keys.begin), std::max(b.keys.end, keys.end)};
  }
  return b;
}

BlockWeights block_weights(const double* queries, const HostArray& keys_transposed,
                           const HostArray& key_norms, const QueryBlock& block, const AttentionSizes& s,
                           const SeenKeys& seen, const ErrorScale& scale, const WeightRounding& rounding) {
  const Index d = s.depth, keys = block.keys.count();
  BlockWeights w{HostArray(static_cast<std::size_t>(block.count * keys)), {}};
  w.squared_errors.resize(w.p.size());
  HostArray sizes(static_cast<std::size_t>(keys));
  host_matmul({queries, keys_transposed.data() + block.keys.begin, w.p.data(), block.count, keys, d, d,
               s.keys, keys});
  for (Index i = 0; i < block.count; ++i) {
    const double length = euclidean_norm({queries + i * d, static_cast<std::size_t>(d)}) * s.scale();
    for (std::size_t j = 0; j < sizes.size(); ++j)
      sizes[j] = length * key_norms[static_cast<std::size_t>(block.keys.begin) + j];
    const KeyRange& own = seen[static_cast<std::size_t>(block.first + i)];
    const auto begin = static_cast<std::size_t>(own.begin - block.keys.begin),
               count = static_cast<std::size_t>(own.count());
    const std::span<double> row = row_of(w.p, i, keys);
    weigh(row.subspan(begin, count), row_of(w.squared_errors, i, keys).subspan(begin, count),
          std::span(sizes).subspan(begin, count), scale, rounding, s.scale());
    std::fill_n(row.begin(), begin, 0.0);
    std::fill(row.begin() + static_cast<Index>(begin + count), row.end(), 0.0);
  }
  return w;
}

std::vector<Reference> attention_reference(const HostArrays& in, const AttentionSizes& s,
                                           std::span<const SeenKeys> seen, const ErrorScale& scale,
                                           ThreadPool& pool, double most_flops,
                                           const WeightRounding& rounding) {
  const Index of_keys = s.keys * s.depth, of_queries = s.queries * s.depth;
  std::vector<Head> prepared(static_cast<std::size_t>(s.batch * s.kv_heads));
  for_rows(pool, s.batch * s.kv_heads, [&](Index h) {
    prepared[static_cast<std::size_t>(h)] =
        prepare(in[1].data() + h * of_keys, in[2].data() + h * of_keys, s);
  });
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  const Index blocks = ceil_div(s.queries, kQueriesAtOnce);
  const std::vector<bool> taken =
      some_of(s.batch * s.heads * blocks, most_flops / attention_flops(s, seen), in[0]);
  y.known = known_rows(taken, s);
  for_rows(pool, s.batch * s.heads * blocks, [&](Index job) {
    if (!taken.empty() && !taken[static_cast<std::size_t>(job)]) return;
    const Index h = job / blocks, shared = h / s.heads_sharing();
    const SeenKeys& own = seen[static_cast<std::size_t>(seen.size() == 1 ? 0 : h / s.heads)];
    const QueryBlock block = query_block(own, job % blocks);
    const Index at = h * of_queries + block.first * s.depth;
    attend(block, in[0].data() + at, in[2].data() + shared * of_keys,
           prepared[static_cast<std::size_t>(shared)], s, own, scale, rounding,
           {y.values.data() + at, y.magnitude.data() + at});
  });
  return {std::move(y)};
}

}  // namespace tilewright::lab
