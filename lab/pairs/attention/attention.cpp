// attention: softmax(scale · q · kᵀ) · v for each head, optionally causal, written with plain ops. Its floor
// is that of one kernel that never stores the scores: q, k, v and the result once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

struct AttentionSizes {
  Index batch, heads, queries, keys, depth;
  bool causal;  // query i sees keys up to i + keys − queries: the last query sees all

  double scale() const { return 1 / std::sqrt(static_cast<double>(depth)); }
  Index seen(Index query) const { return causal ? query + keys - queries + 1 : keys; }
  // 4 FLOPs for each query, key and element of depth; of a causal square, half.
  double flops() const {
    const auto q = static_cast<double>(queries), k = static_cast<double>(keys);
    return 4 * static_cast<double>(batch * heads * depth) * (causal ? q * (k - q) + q * q / 2 : q * k);
  }
};

Tensor attention_as_written(const std::vector<Tensor>& in, const AttentionSizes& s) {
  Tensor scores = matmul(in[0], swap_axes(in[1], 2, 3)) * s.scale();  // (B, H, Q, K)
  if (s.causal) {
    const Tensor past = unsqueeze(in[3], 1) >= unsqueeze(in[4], 0);  // (Q, K)
    scores = where(past, scores, -std::numeric_limits<float>::infinity());
  }
  return matmul(softmax(scores), in[2]);
}

// --- the reference: blocks of queries of one head

constexpr Index kQueriesAtOnce = 64;  // a block's scores stay in the cache for a few thousand keys

// The Euclidean norms of the columns of `a` (rows, columns).
HostArray column_norms(const double* a, Index rows, Index columns) {
  HostArray norms(static_cast<std::size_t>(columns));
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c)
      norms[static_cast<std::size_t>(c)] += a[r * columns + c] * a[r * columns + c];
  }
  for (double& v : norms) v = std::sqrt(v);
  return norms;
}

// One head: its keys and values in the forms that the loops take.
struct Head {
  HostArray keys_transposed;  // (D, K)
  HostArray key_norms;        // (K)
  HostArray squared_values;   // (K, D)
  HostArray value_norms;      // of columns (D)
};

Head prepare(const double* keys, const double* values, const AttentionSizes& s) {
  Head head{.keys_transposed = host_transpose(keys, s.keys, s.depth, s.depth),
            .squared_values = HostArray(values, values + s.keys * s.depth),
            .value_norms = column_norms(values, s.keys, s.depth)};
  head.key_norms = column_norms(head.keys_transposed.data(), s.depth, s.keys);
  for (double& v : head.squared_values) v *= v;
  return head;
}

// From the dot products of one query with the keys it sees to its weights pⱼ, and to how far off each may be,
// squared. `score_sizes`: what each dot product, scaled, sums.
void weigh(std::span<double> p, std::span<double> squared_errors, std::span<const double> score_sizes,
           const ErrorScale& scale, double factor) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double& v : p) largest = std::max(largest, v *= factor);
  for (std::size_t j = 0; j < p.size(); ++j) {
    // Stored: the dot product, the score, the weight. Computed: the dot product, the difference that exp
    // takes, exp.
    squared_errors[j] = scale.term(2 * std::fabs(p[j]) + 1, score_sizes[j] + (largest - p[j]) + 1);
    p[j] = std::exp(p[j] - largest);
    sum += p[j];
  }
  for (std::size_t j = 0; j < p.size(); ++j) {
    p[j] /= sum;
    const double error = p[j] * squared_errors[j];
    squared_errors[j] = error * error;
  }
}

struct Block {
  const double *queries, *values;
  double *to, *magnitude;  // (count, D)
  Index first, count;
};

double norm(std::span<const double> v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

// `magnitude` comes with Σ εⱼ² vⱼ², where weight j is off by εⱼ = pⱼ δⱼ. With the weights' sum, which is off
// as they are, the result y moves by Σ εⱼ (vⱼ − y), whose square is at most 2 (Σ εⱼ² vⱼ² + y² Σ εⱼ²).
void finish_row(std::span<const double> y, std::span<double> magnitude, std::span<const double> p,
                std::span<const double> squared_errors, const HostArray& value_norms,
                const ErrorScale& scale) {
  const double of_sum = std::accumulate(squared_errors.begin(), squared_errors.end(), 0.0);
  const double length = norm(p);
  for (std::size_t d = 0; d < y.size(); ++d) {
    magnitude[d] = std::sqrt(2 * (magnitude[d] + y[d] * y[d] * of_sum)) +
                   scale(std::fabs(y[d]), length * value_norms[d]);
  }
}

void attend(const Block& b, const Head& head, const AttentionSizes& s, const ErrorScale& scale) {
  const Index d = s.depth, k = s.keys;
  HostArray weights(static_cast<std::size_t>(b.count * k)), squared_errors(weights.size());
  HostArray sizes(static_cast<std::size_t>(k));
  host_matmul({b.queries, head.keys_transposed.data(), weights.data(), b.count, k, d, d, k, k});
  for (Index i = 0; i < b.count; ++i) {
    const double length = norm({b.queries + i * d, static_cast<std::size_t>(d)}) * s.scale();
    for (std::size_t j = 0; j < sizes.size(); ++j) sizes[j] = length * head.key_norms[j];
    const auto seen = static_cast<std::size_t>(s.seen(b.first + i));
    const auto row = row_of(weights, i, k);
    weigh(row.first(seen), row_of(squared_errors, i, k).first(seen), sizes, scale, s.scale());
    std::fill(row.begin() + static_cast<Index>(seen), row.end(), 0.0);
  }
  host_matmul({weights.data(), b.values, b.to, b.count, d, k, k, d, d});
  host_matmul({squared_errors.data(), head.squared_values.data(), b.magnitude, b.count, d, k, k, d, d});
  const auto depth = static_cast<std::size_t>(d);
  for (Index i = 0; i < b.count; ++i) {
    finish_row({b.to + i * d, depth}, {b.magnitude + i * d, depth}, row_of(weights, i, k),
               row_of(squared_errors, i, k), head.value_norms, scale);
  }
}

std::vector<Reference> attention_reference(const HostArrays& in, const AttentionSizes& s,
                                           const ErrorScale& scale, ThreadPool& pool) {
  const Index heads = s.batch * s.heads, of_keys = s.keys * s.depth, of_queries = s.queries * s.depth;
  std::vector<Head> prepared(static_cast<std::size_t>(heads));
  for_rows(pool, heads, [&](Index h) {
    prepared[static_cast<std::size_t>(h)] =
        prepare(in[1].data() + h * of_keys, in[2].data() + h * of_keys, s);
  });
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  const Index blocks = ceil_div(s.queries, kQueriesAtOnce);
  for_rows(pool, heads * blocks, [&](Index job) {
    const Index h = job / blocks, first = job % blocks * kQueriesAtOnce;
    const Index at = h * of_queries + first * s.depth;
    attend({.queries = in[0].data() + at,
            .values = in[2].data() + h * of_keys,
            .to = y.values.data() + at,
            .magnitude = y.magnitude.data() + at,
            .first = first,
            .count = std::min(kQueriesAtOnce, s.queries - first)},
           prepared[static_cast<std::size_t>(h)], s, scale);
  });
  return {std::move(y)};
}

// --- the pair

AttentionSizes sizes_of(const Knobs& knobs) {
  const AttentionSizes s{knobs.integer("batch"), knobs.integer("heads"), knobs.integer("queries"),
                         knobs.integer("keys"),  knobs.integer("depth"), knobs.text("causal") == "yes"};
  if (std::min({s.batch, s.heads, s.queries, s.keys, s.depth}) < 1)
    throw Error("attention: sizes are at least 1");
  if (s.causal && s.queries > s.keys)
    throw Error("attention: causal=yes needs at least as many keys as queries: the first would see none");
  return s;
}

InputSpec positions(std::string name, Index first, Index count) {
  return {std::move(name), DType::i64, Shape{count},
          [first, count](Context& context) { return context.arange(count) + first; }, false};
}

Result<PairInstance> make(const Knobs& knobs, LabDevice& device) {
  const AttentionSizes s = sizes_of(knobs);
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "attention",
                   .shape = fmt::format("B{} H{} Q{} K{} D{}{}", s.batch, s.heads, s.queries, s.keys, s.depth,
                                        s.causal ? " causal" : ""),
                   .dtype = std::string(name(dtype))};
  const Shape of_queries{s.batch, s.heads, s.queries, s.depth}, of_keys{s.batch, s.heads, s.keys, s.depth};
  w.inputs = {normal_input("q", of_queries, dtype), normal_input("k", of_keys, dtype),
              normal_input("v", of_keys, dtype)};
  // Roundings of exp and of what is around it, as softmax counts them.
  w.outputs = {{"y", dtype, of_queries, {.storage = dtype, .reduction = s.depth + s.keys, .operations = 12}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  if (s.causal) {
    w.inputs.push_back(positions("query_positions", s.keys - s.queries, s.queries));
    w.inputs.push_back(positions("key_positions", 0, s.keys));
  }
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) { return std::vector{attention_as_written(in, s)}; };
  const ErrorScale scale(w.outputs[0].rule, of_queries.size());
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return attention_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair attention_pair() {
  return {.name = "attention",
          .doc = "softmax(q kT / sqrt(depth)) v of each head",
          .knobs = {{.name = "batch", .values = {Index{1}}, .doc = "sequences"},
                    {.name = "heads", .values = {Index{12}}, .doc = "heads", .cuda_values = {Index{48}}},
                    {.name = "queries", .values = {Index{2048}}, .doc = "rows of q"},
                    {.name = "keys", .values = {Index{2048}}, .doc = "rows of k and of v"},
                    {.name = "depth", .values = {Index{64}}, .doc = "columns of q, k and v"},
                    {.name = "causal",
                     .values = {std::string("no")},
                     .doc = "yes: each query sees the keys up to its own place, the last all",
                     .choices = {std::string("yes"), std::string("no")}},
                    product_dtype_knob()},
          .make = make};
}

}  // namespace tilewright::lab
