// Gradients dV = Pᵀ dY, dQ = scale · dS K and dK = scale · dSᵀ Q, of the weights P, with dP = dY Vᵀ,
// Dᵢ = Σⱼ pᵢⱼ dpᵢⱼ and dS = P ∘ (dP − D). Errors of elements are carried along as squares, as those of
// independent roundings add up.
#include "pairs/attention_gradient_reference.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright::lab {

namespace {

HostArray squared(const double* a, Index count) {
  HostArray squares(a, a + count);
  for (double& v : squares) v *= v;
  return squares;
}

// One head's operands, (length, D) each, in the forms that the loops take.
struct GradientHead {
  const double *q, *k, *v, *dy;
  HostArray keys_transposed, values_transposed;         // (D, K)
  HostArray key_norms, value_norms;                     // of rows (K)
  HostArray squared_queries, squared_keys, squared_dy;  // as they lie
  HostArray query_columns, key_columns, dy_columns;     // norms (D)
};

GradientHead prepare(const HostArrays& in, Index h, const AttentionSizes& s) {
  const Index of_queries = s.queries * s.depth, of_keys = s.keys * s.depth;
  GradientHead head{.q = in[0].data() + h * of_queries,
                    .k = in[1].data() + h * of_keys,
                    .v = in[2].data() + h * of_keys,
                    .dy = in[3].data() + h * of_queries};
  head.keys_transposed = host_transpose(head.k, s.keys, s.depth, s.depth);
  head.values_transposed = host_transpose(head.v, s.keys, s.depth, s.depth);
  head.key_norms = column_norms(head.keys_transposed.data(), s.depth, s.keys);
  head.value_norms = column_norms(head.values_transposed.data(), s.depth, s.keys);
  head.squared_queries = squared(head.q, of_queries);
  head.squared_keys = squared(head.k, of_keys);
  head.squared_dy = squared(head.dy, of_queries);
  head.query_columns = column_norms(head.q, s.queries, s.depth);
  head.key_columns = column_norms(head.k, s.keys, s.depth);
  head.dy_columns = column_norms(head.dy, s.queries, s.depth);
  return head;
}

// The gradients of the scores of one block (count, keys), before the scale; weights with the errors that the
// division by their sum leaves.
struct BlockGradients {
  HostArray p, p_errors;  // the errors squared
  HostArray ds, ds_errors;
};

struct RowParts {
  std::span<const double> dy, y;        // (D)
  std::span<const double> p, p_errors;  // (keys), the errors εⱼ² before the division by the sum
  std::span<const double> dp;           // (keys)
  std::span<const double> value_norms;  // (keys)
};

// One row of dS and the squares of its errors. With changes εⱼ of the weights before they are divided by
// their sum, and cⱼ = dpⱼ − D, dsⱼ moves by εⱼ cⱼ − pⱼ Σ εₖ (cⱼ + cₖ).
void row_gradients(const RowParts& r, std::span<double> ds, std::span<double> errors,
                   const ErrorScale& scale) {
  const double length = euclidean_norm(r.dy);
  double d = 0, squared_products = 0, of_dp = 0;
  for (std::size_t j = 0; j < r.p.size(); ++j) {
    const double product = r.p[j] * r.dp[j], size = length * r.value_norms[j];
    d += product;
    squared_products += product * product;
    const double error = scale.term(std::fabs(r.dp[j]), size);
    errors[j] = error * error;
    const double in_sum = r.p[j] * scale.term(2 * std::fabs(r.dp[j]), size);  // dp, and p dp, stored
    of_dp += in_sum * in_sum;
  }
  // D is summed over keys, or as Σ dy y over the depth, of y as it is stored.
  double squared_dyy = 0;
  for (std::size_t c = 0; c < r.y.size(); ++c) squared_dyy += r.y[c] * r.y[c] * r.dy[c] * r.dy[c];
  const double of_sum = scale.term(std::fabs(d) + std::sqrt(squared_dyy),
                                   std::sqrt(squared_products) + length * euclidean_norm(r.y));
  double of_p = 0, of_p_here = 0;
  for (std::size_t j = 0; j < r.p.size(); ++j) {
    of_p += r.p_errors[j];
    of_p_here += r.p_errors[j] * (r.dp[j] - d) * (r.dp[j] - d);
  }
  for (std::size_t j = 0; j < r.p.size(); ++j) {
    const double change = r.dp[j] - d, squared_p = r.p[j] * r.p[j];
    ds[j] = r.p[j] * change;
    // Stored: the difference, its product with p.
    const double rounding = scale.term(2 * std::fabs(ds[j]), r.p[j] * (std::fabs(r.dp[j]) + std::fabs(d)));
    errors[j] = r.p_errors[j] * change * change + 2 * squared_p * (of_p * change * change + of_p_here) +
                squared_p * (errors[j] + of_dp + of_sum * of_sum) + rounding * rounding;
  }
}

BlockGradients block_gradients(const GradientHead& head, const QueryBlock& block, const double* y,
                               const AttentionSizes& s, const SeenKeys& seen, const ErrorScale& scale) {
  const Index d = s.depth, keys = block.keys.count(), at = block.first * d;
  BlockWeights w = block_weights(head.q + at, head.keys_transposed, head.key_norms, block, s, seen, scale);
  HostArray dp(w.p.size());
  host_matmul({head.dy + at, head.values_transposed.data() + block.keys.begin, dp.data(), block.count, keys,
               d, d, s.keys, keys});
  BlockGradients g{std::move(w.p), std::move(w.squared_errors), HostArray(dp.size()), HostArray(dp.size())};
  const auto depth = static_cast<std::size_t>(d);
  for (Index i = 0; i < block.count; ++i) {
    const std::span<const double> p = row_of(g.p, i, keys);
    const std::span<double> p_errors = row_of(g.p_errors, i, keys);
    row_gradients({.dy = {head.dy + at + i * d, depth},
                   .y = {y + at + i * d, depth},
                   .p = p,
                   .p_errors = p_errors,
                   .dp = row_of(dp, i, keys),
                   .value_norms = {head.value_norms.data() + block.keys.begin, p.size()}},
                  row_of(g.ds, i, keys), row_of(g.ds_errors, i, keys), scale);
    // Weights are divided by their sum, which is off as they are.
    const double of_sum = std::accumulate(p_errors.begin(), p_errors.end(), 0.0);
    for (std::size_t j = 0; j < p.size(); ++j) p_errors[j] += p[j] * p[j] * of_sum;
  }
  return g;
}

// One head's gradients, (length, D); `errors` are squares until they are finished.
struct Sum {
  double *values, *errors;
  HostArray terms;  // Σ of the squares of what each row sums with
};

// to (keys, D) += factor · aᵀ (keys, count) · b (count, D), for values and, squared, for errors.
void add_transposed(Sum& to, const HostArray& a, const HostArray& a_errors, const double* b,
                    const double* squared_b, const QueryBlock& block, Index d) {
  const Index keys = block.keys.count(), from = block.keys.begin * d;
  HostArray part(static_cast<std::size_t>(keys * d));
  const auto add = [&](const HostArray& x, const double* y, double* into) {
    const HostArray transposed = host_transpose(x.data(), block.count, keys, keys);
    host_matmul({transposed.data(), y, part.data(), keys, d, block.count, block.count, d, d});
    for (std::size_t e = 0; e < part.size(); ++e) into[from + static_cast<Index>(e)] += part[e];
  };
  add(a, b, to.values);
  add(a_errors, squared_b, to.errors);
  for (Index i = 0; i < block.count; ++i)
    for (Index j = 0; j < keys; ++j) {
      const double term = a[static_cast<std::size_t>(i * keys + j)];
      to.terms[static_cast<std::size_t>(block.keys.begin + j)] += term * term;
    }
}

// Sums and the squares of their errors become gradients and their magnitudes. `stored`: roundings of the
// result; `columns`: the norms of the other operand's columns.
void finish(Sum& sum, const HostArray& columns, double factor, double stored, const ErrorScale& scale) {
  const auto d = columns.size();
  for (std::size_t r = 0; r < sum.terms.size(); ++r) {
    const double length = std::sqrt(sum.terms[r]);
    for (std::size_t c = 0; c < d; ++c) {
      double &value = sum.values[r * d + c], &error = sum.errors[r * d + c];
      value *= factor;
      error = factor * std::sqrt(error) + scale(stored * std::fabs(value), factor * length * columns[c]);
    }
  }
}

void head_gradients(const GradientHead& head, const double* y, const AttentionSizes& s, const SeenKeys& seen,
                    const ErrorScale& scale, Sum dq, Sum dk, Sum dv) {
  const Index d = s.depth;
  dq.terms.resize(static_cast<std::size_t>(s.queries));
  dk.terms.resize(static_cast<std::size_t>(s.keys));
  dv.terms.resize(static_cast<std::size_t>(s.keys));
  for (Index b = 0; b < ceil_div(s.queries, kQueriesAtOnce); ++b) {
    const QueryBlock block = query_block(seen, b);
    const Index keys = block.keys.count(), at = block.first * d, from = block.keys.begin * d;
    const BlockGradients g = block_gradients(head, block, y, s, seen, scale);
    host_matmul({g.ds.data(), head.k + from, dq.values + at, block.count, d, keys, keys, d, d});
    host_matmul({g.ds_errors.data(), head.squared_keys.data() + from, dq.errors + at, block.count, d, keys,
                 keys, d, d});
    for (Index i = 0; i < block.count; ++i) {
      const double length = euclidean_norm(row_of(g.ds, i, keys));
      dq.terms[static_cast<std::size_t>(block.first + i)] = length * length;
    }
    add_transposed(dk, g.ds, g.ds_errors, head.q + at, head.squared_queries.data() + at, block, d);
    add_transposed(dv, g.p, g.p_errors, head.dy + at, head.squared_dy.data() + at, block, d);
  }
  finish(dq, head.key_columns, s.scale(), 2, scale);
  finish(dk, head.query_columns, s.scale(), 2, scale);
  finish(dv, head.dy_columns, 1, 1, scale);
}

}  // namespace

std::vector<Reference> attention_gradient_reference(const HostArrays& in, const AttentionSizes& s,
                                                    const SeenKeys& seen, const ErrorScale& scale,
                                                    ThreadPool& pool) {
  std::vector<Reference> all =
      attention_reference(in, s, std::span(&seen, 1), scale, pool, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < 3; ++i) all.push_back({HostArray(in[i].size()), HostArray(in[i].size())});
  for_rows(pool, s.batch * s.heads, [&](Index h) {
    const auto sum = [&](Reference& r, Index length) {
      const Index at = h * length * s.depth;
      return Sum{r.values.data() + at, r.magnitude.data() + at, {}};
    };
    head_gradients(prepare(in, h, s), all[0].values.data() + h * s.queries * s.depth, s, seen, scale,
                   sum(all[1], s.queries), sum(all[2], s.keys), sum(all[3], s.keys));
  });
  return all;
}

}  // namespace tilewright::lab
