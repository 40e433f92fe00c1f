// Attention of random numbers on the host, in float64, and what compile() makes of it.
#pragma once

#include "support/open_device.h"
#include "support/random_numbers.h"

#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace tilewright::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  Index batch = 1, heads = 2, shared = 1, queries = 10, keys = 10, depth = 16, columns = 16;
};

using HostScore = std::function<double(double score, Index b, Index h, Index q, Index k)>;
using HostMask = std::function<bool(Index b, Index h, Index q, Index k)>;

// An attention problem, with its score and mask as functions on the host.
struct Problem {
  Sizes sizes;
  std::vector<float> q, k, v;
  HostScore score = [](double s, Index, Index, Index, Index) { return s; };
  HostMask mask = [](Index, Index, Index, Index) { return true; };
};

struct Expected {
  std::vector<double> out, lse;
};

inline Expected on_the_host(const Problem& p) {
  const Sizes& s = p.sizes;
  Expected e;
  const Index kv_heads = s.heads / s.shared;
  std::vector<double> scores(static_cast<std::size_t>(s.keys));
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (Index b = 0; b < s.batch; ++b)
    for (Index h = 0; h < s.heads; ++h)
      for (Index q = 0; q < s.queries; ++q) {
        const Index head = b * kv_heads + h / s.shared;
        double largest = -kInfinity, total = 0;
        for (Index k = 0; k < s.keys; ++k) {
          double sum = 0;
          for (Index d = 0; d < s.depth; ++d)
            sum += static_cast<double>(p.q[at(((b * s.heads + h) * s.queries + q) * s.depth + d)]) *
                   static_cast<double>(p.k[at((head * s.keys + k) * s.depth + d)]);
          sum = p.score(sum / std::sqrt(static_cast<double>(s.depth)), b, h, q, k);
          scores[at(k)] = p.mask(b, h, q, k) ? sum : -kInfinity;
          largest = std::max(largest, scores[at(k)]);
        }
        for (double& v : scores) total += v = v == -kInfinity ? 0 : std::exp(v - largest);
        e.lse.push_back(total == 0 ? -kInfinity : std::log(total) + largest);
        for (Index c = 0; c < s.columns; ++c) {
          double sum = 0;
          for (Index k = 0; k < s.keys; ++k)
            sum += scores[at(k)] * static_cast<double>(p.v[at((head * s.keys + k) * s.columns + c)]);
          e.out.push_back(total == 0 ? 0 : sum / total);
        }
      }
  return e;
}

inline std::vector<float> normal(Index count, std::mt19937_64& random, float spread = 1) {
  RandomNormals d(spread);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& v : out) v = static_cast<float>(d(random));
  return out;
}

// A suite on each device that it is instantiated for.
class AttentionProblems : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  std::mt19937_64 random_{17};

  Problem problem(const Sizes& s, float spread = 1) {
    const Index kv = s.batch * s.heads / s.shared * s.keys;
    return {.sizes = s,
            .q = normal(s.batch * s.heads * s.queries * s.depth, random_, spread),
            .k = normal(kv * s.depth, random_),
            .v = normal(kv * s.columns, random_)};
  }
  std::vector<Tensor> tensors(const Problem& p) {
    const Sizes& s = p.sizes;
    const Index kv = s.heads / s.shared;
    return {ctx_.from(p.q, {s.batch, s.heads, s.queries, s.depth}),
            ctx_.from(p.k, {s.batch, kv, s.keys, s.depth}), ctx_.from(p.v, {s.batch, kv, s.keys, s.columns})};
  }

  // Results and log-sum-exp against the host's, and one kernel.
  void check(const Problem& p, const AttentionOptions& options, std::optional<std::size_t> kernels = 1) {
    const auto compiled = compile([&](const Tensor& q, const Tensor& k, const Tensor& v) {
      return attention_with_lse(q, k, v, options);
    });
    const std::vector<Tensor> in = tensors(p);
    const auto [out, lse] = compiled(in);
    const Expected want = on_the_host(p);
    near(out.to_vector<float>(), want.out, 4e-6);
    near(lse.to_vector<float>(), want.lse, 4e-6);
    const std::size_t more = std::string_view(GetParam()) == "cpu" ? kernels_more_on_this_cpu() : 0;
    const std::size_t got = compiled.report().front().kernels.size();
    EXPECT_GE(got, kernels.value_or(got)) << compiled.explain();
    EXPECT_LE(got, kernels.value_or(got) + more) << compiled.explain();
  }
  static void near(const std::vector<float>& got, const std::vector<double>& want, double bound) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t e = 0; e < got.size(); ++e) {
      if (std::isinf(want[e]) && static_cast<double>(got[e]) == want[e]) continue;
      ASSERT_LE(std::abs(static_cast<double>(got[e]) - want[e]), bound * (1 + std::abs(want[e]))) << e;
    }
  }
};

}  // namespace tilewright::test
