// Lesson 6: attention and its masks.
//
// softmax(scale · q · kᵀ) · v, written with plain operations, would store a score for each query and key.
// Compiled it is one kernel that never does: a maximum and a sum that are carried along as blocks of keys
// come by (Milakov and Gimelshein, arXiv 1805.02867) are enough to weigh the values at once, and the compiler
// finds that by algebra, not by the name of the function. (For few keys several kernels may be faster, and
// are taken where they are predicted to be.)
//
// attention() is for who wants it by name. What is done to the scores, and which of them count, are functions
// of indices (Dong et al., arXiv 2412.05496): arithmetic in the same kernel, and no mask in memory.
//
//   lesson [device] [length]      default: cpu 512
#include <fmt/core.h>

#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

namespace tw = tilewright;
using tw::Index;
using tw::ScoreIndices;
using tw::Tensor;

namespace {

constexpr Index kHeads = 4, kKvHeads = 2, kDepth = 64;  // two query heads share a head of keys and values
constexpr double kScale = 0.125;                        // 1/√64

// --- the first way: plain operations

Tensor plain(const Tensor& q, const Tensor& k, const Tensor& v) {
  return matmul(softmax(matmul(q, swap_axes(k, 2, 3)) * kScale), v);
}

// --- the second: by name, with functions of scores and of indices

// What a variant does on the device, and what it means.
struct Variant {
  const char* what;
  // `ids`: the document of each position; `slopes`: a number for each head.
  std::function<tw::AttentionOptions(const Tensor& ids, const Tensor& slopes)> options;
  std::function<bool(Index q, Index k)> mask = [](Index, Index) { return true; };
  std::function<double(double score, Index head, Index q, Index k)> score = [](double s, Index, Index,
                                                                               Index) { return s; };
};

Index document_of(Index position) { return position / 100 + position / 130; }
double slope_of(Index head) { return std::exp2(-2.0 * static_cast<double>(head + 1)); }

std::vector<Variant> variants() {
  std::vector<Variant> all;
  all.push_back(
      {.what = "no mask", .options = [](const Tensor&, const Tensor&) { return tw::AttentionOptions{}; }});
  // True where the query attends. Both indices are i64 tensors; they broadcast to the scores' shape.
  all.push_back({.what = "causal",
                 .options =
                     [](const Tensor&, const Tensor&) {
                       return tw::AttentionOptions{
                           .mask = [](const ScoreIndices& at) { return at.key <= at.query; }};
                     },
                 .mask = [](Index q, Index k) { return k <= q; }});
  // Common masks have names, and combine: here the 64 keys up to the query's own place.
  all.push_back({.what = "sliding window of 64",
                 .options = [](const Tensor&,
                               const Tensor&) { return tw::AttentionOptions{.mask = tw::window_mask(63)}; },
                 .mask = [](Index q, Index k) { return k <= q && q - k < 64; }});
  // A mask that depends on data reads it by index: documents packed into one sequence keep to themselves.
  all.push_back({.what = "documents, causal",
                 .options =
                     [](const Tensor& ids, const Tensor&) {
                       const auto same = [ids](const ScoreIndices& at) {
                         return tw::element(ids, {at.query}) == tw::element(ids, {at.key});
                       };
                       return tw::AttentionOptions{.mask = tw::all_of({same, tw::causal_mask()})};
                     },
                 .mask = [](Index q, Index k) { return k <= q && document_of(k) == document_of(q); }});
  // Functions of scores come before the mask. ALiBi (Press et al., arXiv 2108.12409): the further back, the
  // less.
  all.push_back({.what = "ALiBi, causal",
                 .options =
                     [](const Tensor&, const Tensor& slopes) {
                       const auto bias = [slopes](const Tensor& score, const ScoreIndices& at) {
                         return score +
                                tw::element(slopes, {at.head}) * tw::cast(at.key - at.query, tw::DType::f32);
                       };
                       return tw::AttentionOptions{.score = bias, .mask = tw::causal_mask()};
                     },
                 .mask = [](Index q, Index k) { return k <= q; },
                 .score = [](double s, Index head, Index q,
                             Index k) { return s + slope_of(head) * static_cast<double>(k - q); }});
  // As Gemma 2 has them: scores that never pass a cap, in a window.
  all.push_back({.what = "soft cap of 2 in a window",
                 .options =
                     [](const Tensor&, const Tensor&) {
                       return tw::AttentionOptions{
                           .score = [](const Tensor& s, const ScoreIndices&) { return tanh(s / 2.f) * 2.f; },
                           .mask = tw::window_mask(63)};
                     },
                 .mask = [](Index q, Index k) { return k <= q && q - k < 64; },
                 .score = [](double s, Index, Index, Index) { return std::tanh(s / 2) * 2; }});
  return all;
}

// --- the meaning, in float64, with what a correct f32 program may be off by

struct Problem {
  std::vector<float> q, k, v;  // (kHeads, length, kDepth), (kKvHeads, length, kDepth)
  Index length;
};

double dot(const float* a, const float* b, double* sizes) {
  double sum = 0;
  for (Index d = 0; d < kDepth; ++d) {
    const double term = static_cast<double>(a[d]) * static_cast<double>(b[d]);
    sum += term;
    *sizes += std::abs(term);
  }
  return sum;
}

// The largest error of `got` in units of its bound. A score of Σ|qk| = m is off by at most (D + 8) u (m + 1),
// its weight by as much relative to itself, and the weighted mean, of weights whose sum is off like they are,
// by Σ p |v| times twice that and the roundings of a sum over the keys. u = 2⁻²⁴.
double worst_error(const Problem& p, const Variant& variant, const std::vector<float>& got) {
  const double u = 0x1p-24;
  double worst = 0;
  std::vector<double> weights(static_cast<std::size_t>(p.length));
  for (Index h = 0; h < kHeads; ++h) {
    const Index shared = h / (kHeads / kKvHeads);
    for (Index q = 0; q < p.length; ++q) {
      double largest = -std::numeric_limits<double>::infinity(), total = 0, size = 0;
      for (Index k = 0; k < p.length; ++k) {
        double terms = 0;
        const double score =
            kScale * dot(&p.q[static_cast<std::size_t>((h * p.length + q) * kDepth)],
                         &p.k[static_cast<std::size_t>((shared * p.length + k) * kDepth)], &terms);
        double& w = weights[static_cast<std::size_t>(k)];
        w = variant.mask(q, k) ? variant.score(score, h, q, k) : -std::numeric_limits<double>::infinity();
        largest = std::max(largest, w);
        if (variant.mask(q, k)) size = std::max(size, kScale * terms + std::abs(w));
      }
      for (double& w : weights) total += w = std::exp(w - largest);
      const double relative = 2 * (kDepth + 8) * u * (size + 1) + static_cast<double>(p.length) * u;
      for (Index d = 0; d < kDepth; ++d) {
        double want = 0, magnitude = 0;
        for (Index k = 0; k < p.length; ++k) {
          const double value =
              static_cast<double>(p.v[static_cast<std::size_t>((shared * p.length + k) * kDepth + d)]);
          want += weights[static_cast<std::size_t>(k)] / total * value;
          magnitude += weights[static_cast<std::size_t>(k)] / total * std::abs(value);
        }
        const double off =
            static_cast<double>(got[static_cast<std::size_t>((h * p.length + q) * kDepth + d)]);
        worst = std::max(worst, std::abs(off - want) / (relative * magnitude));
      }
    }
  }
  return worst;
}

// --- what the log-sum-exp is for: results over parts of the keys make the result over all of them

// Each part's result is a mean with weights that add up to exp(lse) in all; so is their mean with these. This
// is how one query over a long cache is shared out, and how a gradient finds the weights again without
// storing them.
Tensor in_two_parts(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Index half = k.shape()[2] / 3;  // any place will do
  const auto part = [&](const tw::SliceRange& keys) {
    return tw::attention_with_lse(q, slice(k, 2, keys), slice(v, 2, keys));
  };
  const auto [y1, lse1] = part({0, half});
  const auto [y2, lse2] = part({half, {}});
  const Tensor first = unsqueeze(sigmoid(lse1 - lse2), -1);  // exp(lse1) / (exp(lse1) + exp(lse2))
  return y1 * first + y2 * (1.f - first);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  tw::Context ctx({.device = device});
  const Index length = argc > 2 ? std::atoll(argv[2]) : 512;
  const Tensor q = ctx.randn({1, kHeads, length, kDepth}), k = ctx.randn({1, kKvHeads, length, kDepth}),
               v = ctx.randn({1, kKvHeads, length, kDepth});
  const Problem problem{q.to_vector<float>(), k.to_vector<float>(), v.to_vector<float>(), length};

  // Plain operations know nothing of heads that share: k and v as often as they are needed.
  const auto repeated = [](const Tensor& x) { return tw::stack({x, x}, 2); };  // (1, Hkv, 2, T, D)
  const Tensor keys = reshape(repeated(k), q.shape()), values = reshape(repeated(v), q.shape());
  auto written = tw::compile(plain);
  const std::vector<float> plainly = written(q, keys, values).to_vector<float>();
  fmt::print("{}\n", written.explain());

  bool right = true;
  const auto say = [&](const char* what, std::size_t kernels, double error) {
    fmt::print("  {:30} {} kernel{}, error {:.3f} of its bound\n", what, kernels, kernels == 1 ? "" : "s",
               error);
    right = right && error <= 1;
  };
  const std::vector<Variant> all = variants();
  say("plain operations", written.report().at(0).kernels.size(), worst_error(problem, all[0], plainly));

  std::vector<Index> documents;
  std::vector<float> slope;
  documents.reserve(static_cast<std::size_t>(length)), slope.reserve(static_cast<std::size_t>(kHeads));
  for (Index i = 0; i < length; ++i) documents.push_back(document_of(i));
  for (Index h = 0; h < kHeads; ++h) slope.push_back(static_cast<float>(slope_of(h)));
  const Tensor ids = ctx.from(documents, {length}), slopes = ctx.from(slope, {kHeads});
  for (const Variant& variant : all) {
    // ids and slopes are arguments, not captured: a captured tensor is read once, when the function is
    // traced.
    auto f = tw::compile([&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d,
                             const Tensor& e) { return tw::attention(a, b, c, variant.options(d, e)); });
    const std::vector<float> y = f(q, k, v, ids, slopes).to_vector<float>();
    say(variant.what, f.report().at(0).kernels.size(), worst_error(problem, variant, y));
  }

  auto merged = tw::compile(in_two_parts);
  const std::vector<float> y = merged(q, k, v).to_vector<float>();
  const std::size_t kernels = merged.report().at(0).kernels.size();
  say("two parts merged by their lse", kernels, worst_error(problem, all[0], y));
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
