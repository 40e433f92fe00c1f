// The gradient of a whole block of GPT-2, as training takes it: attention with heads beside one another in
// memory, residuals, norms, a feed-forward layer, and a head over a vocabulary.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Tensors = std::vector<Tensor>;

struct BlockSizes {
  Index batch, time, heads, head, vocabulary;
  Index channels() const { return heads * head; }
};

// Arguments: x, the weights and biases of qkv, output, widening and narrowing, the head; labels, positions.
Tensor loss(const Tensors& in, const BlockSizes& s) {
  const Index c = s.channels();
  Tensor x = in[0];
  const Tensor qkv = matmul(layer_norm(x, std::nullopt, std::nullopt), in[1]) + in[2];
  const auto heads = [&](Index part) {
    return transpose(reshape(slice(qkv, 2, {part * c, (part + 1) * c}), {s.batch, s.time, s.heads, s.head}),
                     {0, 2, 1, 3});
  };
  const Tensor scores =
      matmul(heads(0), swap_axes(heads(1), 2, 3)) * (1 / std::sqrt(static_cast<double>(s.head)));
  const Tensor past = unsqueeze(in[11], 1) >= unsqueeze(in[11], 0);
  const Tensor weights = softmax(where(past, scores, -std::numeric_limits<float>::infinity()));
  const Tensor mixed = reshape(transpose(matmul(weights, heads(2)), {0, 2, 1, 3}), {s.batch, s.time, c});
  x = x + matmul(mixed, in[3]) + in[4];
  const Tensor wide = gelu_tanh(matmul(layer_norm(x, std::nullopt, std::nullopt), in[5]) + in[6]);
  x = x + matmul(wide, in[7]) + in[8];
  return cross_entropy(matmul(layer_norm(x, std::nullopt, std::nullopt), transpose(in[9], {1, 0})), in[10]);
}

class BlockGradient : public ::testing::TestWithParam<const char*> {};

TEST_P(BlockGradient, IsWhatTheOpsOneByOneGive) {
  Context ctx{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  const BlockSizes s{2, 96, 3, 8, 130};
  const Index c = s.channels();
  const auto weight = [&](const Shape& shape) { return ctx.randn(shape) * 0.2; };
  const Tensors args = {ctx.randn({s.batch, s.time, c}),
                        weight({c, 3 * c}),
                        weight({3 * c}),
                        weight({c, c}),
                        weight({c}),
                        weight({c, 4 * c}),
                        weight({4 * c}),
                        weight({4 * c, c}),
                        weight({c}),
                        weight({s.vocabulary, c}),
                        ctx.randint({s.batch, s.time}, s.vocabulary),
                        ctx.arange(s.time)};
  const auto gradients = [&](const CompileOptions& options) {
    return compile(
        [both = value_and_grad([=](const Tensors& x) { return loss(x, s); }, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})](
            const Tensors& x) { return tensors_of(both(x)); },
        options);
  };
  const auto compiled = gradients({.recompute = Recompute::always});
  const Tensors got = compiled(args), want = gradients({.fuse = false})(args);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto g = got[i].to_vector<float>(), w = want[i].to_vector<float>();
    float largest = 0;
    for (float value : w) largest = std::max(largest, std::abs(value));
    // Sums of up to 192 products in another order, a dozen of them one after another.
    for (std::size_t e = 0; e < g.size(); ++e) ASSERT_NEAR(g[e], w[e], 1e-5 * largest) << i << " " << e;
  }
  // Neither scores nor logits: attention is four kernels, the head three.
  const SpecialisationReport report = compiled.report().front();
  EXPECT_NE(report.recomputing.find("computed again"), std::string::npos) << compiled.explain();
  const Index scores = 4 * s.batch * s.heads * s.time * s.time, logits = 4 * s.batch * s.time * s.vocabulary;
  EXPECT_LT(report.arena_bytes, scores + logits) << compiled.explain();
  EXPECT_LE(report.kernels.size(), 33U) << compiled.explain();
}

INSTANTIATE_TEST_SUITE_P(Devices, BlockGradient, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
