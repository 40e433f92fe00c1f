// attention() with score and mask functions: values against loops on the host in float64, over lengths, head
// dims, shared heads and combinations of masks; rows with nothing to attend; gradients; what users do wrong.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "compile/attention_problem.h"
#include "support/draws.h"
#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using test::Expected;
using test::HostMask;
using test::message_of;
using test::normal;
using test::on_the_host;
using test::Problem;
using test::Sizes;

class AttentionFunctions : public test::AttentionProblems {};

TEST_P(AttentionFunctions, TakesLengthsHeadDimsAndSharedHeads) {
  for (const Sizes& s :
       {Sizes{2, 4, 2, 33, 70, 32, 32}, Sizes{1, 6, 3, 1, 500, 64, 64}, Sizes{1, 2, 2, 70, 33, 128, 40},
        Sizes{1, 1, 1, 5, 40, 256, 256}, Sizes{2, 2, 1, 31, 250, 80, 80}, Sizes{1, 4, 4, 7, 1, 48, 16}}) {
    SCOPED_TRACE(s.depth);
    check(problem(s), {}, s.keys == 1 ? 2 : 1);  // over one key there is no loop to share
  }
}

TEST_P(AttentionFunctions, MasksByPosition) {
  const Sizes s{1, 2, 1, 250, 500, 32, 32};
  struct Case {
    MaskFunction mask;
    HostMask host;
    // Values that no query sees are zeros, in the same kernel or, where that costs less, in one before it.
    std::optional<std::size_t> kernels = 1;
  };
  const Index ends = s.keys - s.queries;
  const std::vector<Case> cases = {
      {causal_mask(ends), [&](Index, Index, Index q, Index k) { return k <= q + ends; }},
      {causal_mask(), [&](Index, Index, Index q, Index k) { return k <= q; }},
      {causal_mask(-40), [&](Index, Index, Index q, Index k) { return k <= q - 40; }},
      {window_mask(20), [&](Index, Index, Index q, Index k) { return k <= q && k >= q - 20; }},
      {window_mask(7, 30, ends),
       [&](Index, Index, Index q, Index k) { return k <= q + ends + 30 && k >= q + ends - 7; }},
      {prefix_mask(13), [&](Index, Index, Index, Index k) { return k < 13; }, std::nullopt},
      {prefix_mask(0), [&](Index, Index, Index, Index) { return false; }, std::nullopt},
      {any_of({causal_mask(), prefix_mask(50)}),
       [&](Index, Index, Index q, Index k) { return k <= q || k < 50; }},
      {all_of({causal_mask(), window_mask(9, 9)}),
       [&](Index, Index, Index q, Index k) { return k <= q && k >= q - 9; }},
      {[](const ScoreIndices& at) { return ((at.query + at.key) % 3) == at.head; },
       [&](Index, Index h, Index q, Index k) { return (q + k) % 3 == h; }, std::nullopt},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Problem p = problem(s);
    p.mask = cases[i].host;
    // The interpreter has no times by which one kernel would be better than two.
    check(p, {.mask = cases[i].mask},
          std::string_view(GetParam()) == "cpu" ? cases[i].kernels : std::nullopt);
  }
}

// Masks of positions decide blocks of keys before the loop over them; the cost counts those that remain.
TEST_P(AttentionFunctions, WalksTheBlocksThatMasksLeave) {
  const Tensor q = ctx_.randn({1, 1, 4096, 16}), k = ctx_.randn({1, 1, 4096, 16});
  const auto flops_under = [&](const MaskFunction& mask) {
    const auto f =
        compile([&](const Tensor& a, const Tensor& b) { return attention(a, b, b, {.mask = mask}); });
    const std::vector<Tensor> stand_ins = {q, k};
    f(stand_ins);
    const auto report = f.report();
    EXPECT_LE(report.front().kernels.size(), 2U) << "beside the zeros that nobody sees";
    const std::string& note = report.front().kernels.back().note;
    EXPECT_EQ(note.find("masks leave"), 0U) << note;
    EXPECT_NE(f.explain().find(note), std::string::npos);
    return report.front().kernels.back().cost.matrix[DType::f32];
  };
  if (std::string(GetParam()) == "reference") return;  // slow, and of the same kernels
  const double all = 2.0 * 2 * 4096 * 4096 * 16;
  EXPECT_NEAR(flops_under(causal_mask()) / all, 0.5, 0.05);
  EXPECT_NEAR(flops_under(window_mask(255)) / all, 2.25 * 256 / 4096, 0.02);
  EXPECT_NEAR(flops_under(all_of({causal_mask(-1024), prefix_mask(2048)})) / all, 0.25, 0.04);
}

TEST_P(AttentionFunctions, MasksByCapturedTensors) {
  const Sizes s{2, 4, 2, 120, 120, 32, 32};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(s.batch * s.keys));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>(i % 120 / (i < 120 ? 23 : 41));
  const Tensor of_batches = ctx_.from(ids, {2, 120}), of_all = select(of_batches, 0, 1);
  const std::vector<Index> lengths = {77, 0};
  Problem p = problem(s);
  p.mask = [&](Index b, Index, Index q, Index k) {
    return ids[static_cast<std::size_t>(b * 120 + q)] == ids[static_cast<std::size_t>(b * 120 + k)] && k <= q;
  };
  check(p, {.mask = all_of({document_mask(of_batches), causal_mask()})});
  p.mask = [&](Index, Index, Index q, Index k) {
    return ids[static_cast<std::size_t>(120 + q)] == ids[static_cast<std::size_t>(120 + k)];
  };
  check(p, {.mask = document_mask(of_all)});
  p.mask = [&](Index b, Index, Index, Index k) { return k < lengths[static_cast<std::size_t>(b)]; };
  check(p, {.mask = prefix_mask(ctx_.from(lengths, {2}))}, std::nullopt);
}

TEST_P(AttentionFunctions, ChangesScores) {
  const Sizes s{2, 4, 2, 40, 60, 32, 32};
  const std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  const std::vector<float> bias = normal(s.heads * s.queries * s.keys, random_);
  Problem p = problem(s, 3);
  const auto alibi = [&](double x, Index, Index h, Index q, Index k) {
    return x + static_cast<double>(slopes[static_cast<std::size_t>(h)]) * static_cast<double>(k - q - 20);
  };
  p.score = alibi;
  check(p, {.score = alibi_score(ctx_.from(slopes, {4}), 20)});
  p.score = [](double x, Index, Index, Index, Index) { return 2 * std::tanh(x / 2); };
  check(p, {.score = soft_cap_score(2)});
  p.score = [&](double x, Index b, Index h, Index q, Index k) {
    return 5 * std::tanh(alibi(x, b, h, q, k) / 5);
  };
  p.mask = [](Index, Index, Index q, Index k) { return k <= q + 20; };
  check(p, {.score = chain({alibi_score(ctx_.from(slopes, {4}), 20), soft_cap_score(5)}),
            .mask = causal_mask(20)});
  p.mask = [](Index, Index, Index, Index) { return true; };
  p.score = [&](double x, Index, Index h, Index q, Index k) {
    return x + static_cast<double>(bias[static_cast<std::size_t>((h * s.queries + q) * s.keys + k)]);
  };
  check(p, {.score = bias_score(ctx_.from(bias, {s.heads, s.queries, s.keys}))});
  // A bias of the distance alone: a table, read as a view.
  const std::vector<float> table = normal(s.queries + s.keys, random_);
  const Tensor relative = ctx_.from(table, {s.queries + s.keys});
  p.score = [&](double x, Index, Index, Index q, Index k) {
    return x + static_cast<double>(table[static_cast<std::size_t>(q - k + s.keys)]);
  };
  check(p, {.score = [&](const Tensor& x, const ScoreIndices& at) {
          return x + element(relative, {at.query - at.key + s.keys});
        }});
}

struct RandomMask {
  MaskFunction mask;
  HostMask host;
};

// Atoms with random numbers, their complements, and combinations of two such.
RandomMask random_mask(std::mt19937_64& random, const Sizes& s, int depth) {
  const auto below = [&](Index n) { return static_cast<Index>(random() % static_cast<unsigned>(n)); };
  const Index offset = below(s.keys + s.queries) - s.queries;
  if (depth > 0) {
    const RandomMask a = random_mask(random, s, depth - 1), b = random_mask(random, s, depth - 1);
    if (below(2) == 0)
      return {all_of({a.mask, b.mask}),
              [=](Index i, Index h, Index q, Index k) { return a.host(i, h, q, k) && b.host(i, h, q, k); }};
    return {any_of({a.mask, b.mask}),
            [=](Index i, Index h, Index q, Index k) { return a.host(i, h, q, k) || b.host(i, h, q, k); }};
  }
  const Index x = below(s.keys + 1), y = below(s.keys + 1);
  switch (below(6)) {
    case 0:
      return {causal_mask(offset), [=](Index, Index, Index q, Index k) { return k <= q + offset; }};
    case 1:
      return {window_mask(x / 4, y / 4, offset), [=](Index, Index, Index q, Index k) {
                return k >= q + offset - x / 4 && k <= q + offset + y / 4;
              }};
    case 2:
      return {prefix_mask(x), [=](Index, Index, Index, Index k) { return k < x; }};
    case 3:
      return {[=](const ScoreIndices& at) { return (at.query * 3 - x) != at.key * 2; },
              [=](Index, Index, Index q, Index k) { return q * 3 - x != k * 2; }};
    case 4:
      return {[=](const ScoreIndices& at) { return trunc_div(at.query, 16) == trunc_div(at.key, 16); },
              [=](Index, Index, Index q, Index k) { return q / 16 == k / 16; }};
    default:
      return {[=](const ScoreIndices& at) { return ~((at.head + at.batch) * 10 < at.key); },
              [=](Index b, Index h, Index, Index k) { return (h + b) * 10 >= k; }};
  }
}

TEST_P(AttentionFunctions, TakesRandomMasks) {
  const auto one_of = [&](std::initializer_list<Index> of) { return of.begin()[random_() % of.size()]; };
  for (int i = 0; i < static_cast<int>(test::draws(24)); ++i) {
    SCOPED_TRACE(i);
    const Index shared = one_of({1, 2}), depth = one_of({32, 48, 64, 96, 128, 256});
    const Sizes s{one_of({1, 2}),
                  shared * one_of({1, 2}),
                  shared,
                  one_of({1, 2, 31, 64, 100, 200}),
                  one_of({3, 130, 256, 300, 600}),
                  depth,
                  one_of({depth, 32})};
    Problem p = problem(s);
    const RandomMask mask = random_mask(random_, s, i % 3);
    p.mask = mask.host;
    check(p, {.mask = mask.mask}, std::nullopt);
  }
}

TEST_P(AttentionFunctions, TakesScoresThatOverflowWithoutTheirMaximum) {
  Problem p = problem({1, 2, 1, 40, 300, 32, 32}, 200);
  p.mask = [](Index, Index, Index q, Index k) { return k > 2 * q; };
  const auto options = AttentionOptions{.mask = [](const ScoreIndices& at) { return at.key > at.query * 2; }};
  const auto [out, lse] = attention_with_lse(tensors(p)[0], tensors(p)[1], tensors(p)[2], options);
  const Expected want = on_the_host(p);
  // Scores of some hundreds carry errors of 1e-5 each.
  near(out.to_vector<float>(), want.out, 2e-3);
  near(lse.to_vector<float>(), want.lse, 1e-6);
}

TEST_P(AttentionFunctions, GivesZeroOfNothing) {
  const Tensor q = ctx_.randn({1, 2, 3, 16}), none = ctx_.zeros({1, 2, 0, 16});
  const auto [out, lse] = attention_with_lse(q, none, none);
  for (float v : out.to_vector<float>()) EXPECT_EQ(v, 0);
  for (float v : lse.to_vector<float>()) EXPECT_EQ(v, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(attention(ctx_.zeros({2, 3, 0, 8}), ctx_.zeros({2, 3, 5, 8}), ctx_.zeros({2, 3, 5, 8})).shape(),
            Shape({2, 3, 0, 8}));
}

TEST_P(AttentionFunctions, NarrowTypesKeepTheirType) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Problem p = problem({1, 4, 2, 30, 200, 64, 64});
    p.mask = [](Index, Index, Index q, Index k) { return k <= q + 170; };
    for (std::vector<float>* x : {&p.q, &p.k, &p.v})
      for (float& value : *x) value = static_cast<float>(round_to(dtype, static_cast<double>(value)));
    const std::vector<Tensor> in = tensors(p);
    const auto [out, lse] = attention_with_lse(cast(in[0], dtype), cast(in[1], dtype), cast(in[2], dtype),
                                               {.mask = causal_mask(170)});
    EXPECT_EQ(out.dtype(), dtype);
    EXPECT_EQ(lse.dtype(), DType::f32);
    const Expected want = on_the_host(p);
    // The weights and the result are rounded to the type.
    near(out.to_vector<float>(), want.out, 3 * unit_roundoff(dtype));
    near(lse.to_vector<float>(), want.lse, 4e-6);
  }
}

// Weights that are kept are scaled, so that the mean over many keys stays; the same seed drops the same.
TEST_P(AttentionFunctions, DropsWeights) {
  const Tensor q = ctx_.zeros({1, 2, 50, 32}), k = ctx_.zeros({1, 2, 900, 32}),
               v = ctx_.ones({1, 2, 900, 32});
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& seed) {
    return attention(a, b, c, {.dropout = 0.25, .seed = seed});
  };
  const auto compiled = compile(f);
  const Tensor seed = ctx_.scalar(5, DType::i64);
  const auto got = compiled(q, k, v, seed).to_vector<float>();
  double mean = 0;
  for (float x : got) mean += static_cast<double>(x) / static_cast<double>(got.size());
  // 100 rows of 900 weights: one standard deviation of the mean is sqrt(1/3 / 90000) = 0.002.
  EXPECT_NEAR(mean, 1, 0.008);
  EXPECT_GT(std::abs(got[0] - 1), 1e-4);
  EXPECT_EQ(got, f(q, k, v, seed).to_vector<float>());
  EXPECT_NE(got, compiled(q, k, v, ctx_.scalar(6, DType::i64)).to_vector<float>());
  EXPECT_EQ(compiled.report().front().kernels.size(), 1U) << compiled.explain();
}

// Gradients for q, k, v and a captured bias, checked by differences of the loss. Queries without keys, by the
// mask and by the bias, have gradients of 0.
TEST_P(AttentionFunctions, HasGradients) {
  const Sizes s{1, 2, 2, 5, 7, 4, 3};
  Problem p = problem(s);
  std::vector<float> bias = normal(s.queries * s.keys, random_);
  std::fill_n(bias.begin() + 4 * s.keys, s.keys, -std::numeric_limits<float>::infinity());
  std::vector<Tensor> in = tensors(p);
  in.push_back(ctx_.from(bias, {s.queries, s.keys}));
  for (Tensor& t : in) t = cast(t, DType::f64);
  const auto loss = [](const std::vector<Tensor>& x) {
    AttentionOptions o{.score = chain({soft_cap_score(3), bias_score(x[3])}),
                       .mask = [](const ScoreIndices& at) { return (at.key <= at.query) & (at.query != 2); }};
    const auto [out, lse] = attention_with_lse(x[0], x[1], x[2], o);
    return std::vector<Tensor>{sum(out * out) + sum(tilewright::where(isfinite(lse), lse, 0.0))};
  };
  const std::vector<Tensor> got = value_and_grad(loss, {0, 1, 2, 3})(in).second;
  constexpr double kStep = 1e-6;
  for (std::size_t a = 0; a < in.size(); ++a) {
    const auto gradient = got[a].to_vector<double>();
    const auto values = in[a].to_vector<double>();
    for (std::size_t e = 0; e < values.size(); e += 3) {
      const auto moved = [&](double by) {
        std::vector<double> x = values;
        x[e] += by;
        std::vector<Tensor> args = in;
        args[a] = ctx_.from(x, in[a].shape());
        return loss(args)[0].item();
      };
      ASSERT_NEAR(gradient[e], (moved(kStep) - moved(-kStep)) / (2 * kStep), 1e-7) << a << " " << e;
    }
  }
  const auto of_q = got[0].to_vector<double>();
  for (Index row : {2, 4})
    for (Index d = 0; d < s.depth; ++d) EXPECT_EQ(of_q[static_cast<std::size_t>(row * s.depth + d)], 0);
}

TEST_P(AttentionFunctions, SaysWhatDoesNotFit) {
  const Tensor q = ctx_.zeros({2, 4, 5, 8}), k = ctx_.zeros({2, 2, 6, 8});
  const auto says = [&](const std::function<void()>& mistake, std::vector<std::string> parts) {
    parts.emplace_back("attention_functions_test.cpp:");
    expect_says(mistake, parts);
  };
  const auto zeros = [&](const Shape& s, DType d = DType::f32) { return ctx_.zeros(s, d); };
  says([&] { attention(zeros({4, 5, 8}), k, k); }, {"wants (batch, heads, length, head dim)", "f32[4,5,8]"});
  says([&] { attention(zeros({1, 4, 5, 8}), k, k); }, {"batches differ", "f32[1,4,5,8]", "f32[2,2,6,8]"});
  says([&] { attention(q, k, zeros({2, 4, 6, 8})); }, {"k and v differ in heads"});
  says([&] { attention(q, k, zeros({2, 2, 7, 8})); }, {"k and v differ in length"});
  says([&] { attention(zeros({2, 4, 5, 16}), k, k); }, {"q and k differ in head dim"});
  says([&] { attention(zeros({2, 5, 5, 8}), k, k); }, {"no multiple"});
  says([&] { attention(zeros({2, 4, 5, 8}, DType::bf16), k, k); }, {"one float type", "bf16[2,4,5,8]"});
  says(
      [&] {
        attention(zeros({2, 4, 5, 8}, DType::i32), zeros({2, 4, 5, 8}, DType::i32),
                  zeros({2, 4, 5, 8}, DType::i32));
      },
      {"one float type", "i32"});
  says([&] { attention(q, k, k, {.mask = [](const ScoreIndices& at) { return at.key; }}); },
       {"the mask function returned i64[6]", "bools"});
  says([&] { attention(q, k, k, {.mask = [&](const ScoreIndices&) { return zeros({5}) > 0.f; }}); },
       {"the mask function returned bool[5]", "[2,4,5,6]"});
  says([&] { attention(q, k, k, {.mask = [](const ScoreIndices&) { return Tensor(); }}); },
       {"the mask function returned no tensor"});
  says([&] { attention(q, k, k, {.score = [](const Tensor& s, const ScoreIndices&) { return s > 0.f; }}); },
       {"the score function returned bool[2,4,5,6]", "floats"});
  says([&] { attention(q, k, k, {.score = bias_score(zeros({3, 1, 4, 5, 6}))}); },
       {"bias_score", "f32[3,1,4,5,6]", "[2,4,5,6]"});
  const auto deeper = [&](const Tensor& s, const ScoreIndices&) { return s + zeros({3, 1, 4, 5, 6}); };
  says([&] { attention(q, k, k, {.score = deeper}); }, {"the score function returned f32[3,2,4,5,6]"});
  says([&] { attention(q, k, k, {.dropout = 1, .seed = ctx_.scalar(1, DType::i64)}); }, {"dropout is 1"});
  says([&] { attention(q, k, k, {.dropout = 0.5}); }, {"dropout needs a seed"});
  says([&] { attention(q, Tensor(), k); }, {"never given a value"});
  says([&] { element(k, {k}); }, {"element", "1 indices for [2,2,6,8]"});
  says([&] { element(zeros({3}), {zeros({3})}); }, {"element", "f32"});
  EXPECT_NE(message_of([] { all_of({}); }).find("no masks"), std::string::npos);
}

TEST_P(AttentionFunctions, ReadsElementsOfTables) {
  const Tensor table = ctx_.from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor i = ctx_.from(std::vector<Index>{0, 1, 1, 2, 0}, {5}),
               j = ctx_.from(std::vector<Index>{2, 0, 2, 0, -1}, {5});
  EXPECT_EQ(element(table, {i, j}).to_vector<float>(), (std::vector<float>{3, 4, 6, 0, 0}));
}

// The header's rule: NaN in keys that no query sees is as good as zeros, in the value and in all gradients.
TEST_P(AttentionFunctions, KeysThatNoQuerySeesMayHoldAnything) {
  constexpr Index kQueries = 20, kKeys = 50;
  const Tensor query_ids = ctx_.from(std::vector<Index>(kQueries, 1), {kQueries});
  std::vector<Index> ids(kKeys, 1);
  std::fill(ids.begin() + 12, ids.begin() + 16, -1);
  const Tensor key_ids = ctx_.from(ids, {kKeys});
  const struct {
    MaskFunction mask;
    std::function<bool(Index)> hidden;
  } cases[] = {{causal_mask(), [](Index k) { return k >= 20; }},
               {window_mask(3, 2, 10), [](Index k) { return k < 7 || k > 31; }},
               {document_mask(query_ids, key_ids), [](Index k) { return k >= 12 && k < 16; }},
               {all_of({causal_mask(4), document_mask(query_ids, key_ids)}),
                [](Index k) { return k >= 24 || (k >= 12 && k < 16); }},
               {any_of({prefix_mask(5), window_mask(0, 0, 30)}), [](Index k) { return k >= 5 && k < 30; }}};
  const Tensor q = ctx_.randn({1, 4, kQueries, 16});
  for (const auto& c : cases) {
    std::vector<float> clean = ctx_.randn({1, 2, kKeys, 16}).to_vector<float>(), poisoned = clean;
    for (std::size_t i = 0; i < clean.size(); ++i)
      if (c.hidden(static_cast<Index>(i) / 16 % kKeys))
        clean[i] = 0, poisoned[i] = i % 2 == 0 ? NAN : INFINITY;
    const auto loss = [&](const std::vector<Tensor>& x) {
      return std::vector<Tensor>{sum(attention(x[0], x[1], x[2], {.mask = c.mask}) * 0.5)};
    };
    const auto step = value_and_grad(loss, {0, 1, 2});
    const auto all = [&](const std::vector<float>& of) {
      const Tensor cache = ctx_.from(of, {1, 2, kKeys, 16});
      return tensors_of(step({q, cache, cache * 0.5}));
    };
    const std::vector<Tensor> want = all(clean), got = all(poisoned);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>());
  }
}

// The same of q in rows that see nothing: d k of keys that other rows see is not reached.
TEST_P(AttentionFunctions, QueriesThatSeeNothingMayHoldAnything) {
  constexpr Index kBatch = 2, kHeads = 4, kLength = 40;
  const Tensor starts = ctx_.from(std::vector<Index>{11, 0}, {kBatch});
  std::vector<Index> ids(kLength, 1);
  std::fill(ids.begin() + 30, ids.end(), 2);
  const Tensor query_ids = ctx_.from(ids, {kLength}),
               key_ids = ctx_.from(std::vector<Index>(kLength, 1), {kLength});
  // Padding before each sequence.
  const MaskFunction padded = [&](const ScoreIndices& at) {
    const Tensor start = element(starts, {at.batch});
    return logical_and(at.key >= start, at.key <= at.query);
  };
  const MaskFunction few_queries = [&](const ScoreIndices& at) {
    return logical_and(at.query < kLength - 9, at.key <= at.query + 3);
  };
  const struct {
    MaskFunction mask;
    std::function<bool(Index, Index)> hidden;  // batch, query
  } cases[] = {{causal_mask(-7), [](Index, Index q) { return q < 7; }},
               {window_mask(2, 1, 20), [](Index, Index q) { return q > 21; }},
               {document_mask(query_ids, key_ids), [](Index, Index q) { return q >= 30; }},
               {padded, [](Index b, Index q) { return b == 0 && q < 11; }},
               {few_queries, [](Index, Index q) { return q >= kLength - 9; }}};
  const Tensor k = ctx_.randn({kBatch, 2, kLength, 16}), v = ctx_.randn({kBatch, 2, kLength, 16});
  for (const auto& c : cases) {
    std::vector<float> clean = ctx_.randn({kBatch, kHeads, kLength, 16}).to_vector<float>(), poisoned = clean;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      const auto row = static_cast<Index>(i) / 16;
      if (c.hidden(row / (kHeads * kLength), row % kLength))
        clean[i] = 0, poisoned[i] = i % 2 == 0 ? NAN : INFINITY;
    }
    const auto loss = [&](const std::vector<Tensor>& x) {
      return std::vector<Tensor>{sum(square(attention(x[0], x[1], x[2], {.mask = c.mask})))};
    };
    const auto step = value_and_grad(loss, {0, 1, 2});
    const auto all = [&](const std::vector<float>& of) {
      return tensors_of(step({ctx_.from(of, {kBatch, kHeads, kLength, 16}), k, v}));
    };
    const std::vector<Tensor> want = all(clean), got = all(poisoned);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>()) << "mask " << &c - cases << ", " << i;
  }
}

// Weights are rounded to v's type, each by 2^-4 (e4m3): a mean of v is at most as far off. Small weights
// count: 4,000 keys at 2^-11 of the largest weight make two thirds of the sum.
TEST_P(AttentionFunctions, EightBitsUseTheirRange) {
  constexpr Index kKeys = 300, kMany = 4001;
  const auto of8 = [&](const Shape& shape) { return cast(ctx_.randn(shape), DType::f8e4m3); };
  const Tensor q = of8({1, 4, 70, 64}), k = of8({1, 2, kKeys, 64}), v = of8({1, 2, kKeys, 64});
  const auto wide = [](const Tensor& x) { return cast(x, DType::f32); };
  const auto [got, lse] = attention_with_lse(q, k, v);
  const auto [want, want_lse] = attention_with_lse(wide(q), wide(k), wide(v));
  const double largest = max(abs(wide(v))).to_vector<float>()[0];
  EXPECT_EQ(got.dtype(), DType::f32);
  const auto a = got.to_vector<float>(), b = want.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], largest / 16) << i;
  const auto c = lse.to_vector<float>(), d = want_lse.to_vector<float>();
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], d[i], 1e-5) << i;

  std::vector<float> keys(kMany, -11.f), values(kMany, 1.f);
  keys[7] = 0, values[7] = 0;
  const auto narrow = [&](const std::vector<float>& x) {
    return cast(ctx_.from(x, {1, 1, kMany, 1}), DType::f8e4m3);
  };
  const Tensor one = cast(ctx_.ones({1, 1, 1, 1}), DType::f8e4m3);
  const double small = 4000 * std::exp2(-11.0);
  EXPECT_NEAR(attention(one, narrow(keys), narrow(values), {.scale = std::log(2.0)}).to_vector<float>()[0],
              small / (1 + small), 1. / 16);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionFunctions, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
