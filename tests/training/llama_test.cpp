// Llama: names and shapes of the public checkpoints, rotary embeddings as turned planes, mistakes.
#include <gtest/gtest.h>

#include <tilewright/nn/llama.h>
#include <tilewright/tilewright.hpp>

#include <array>
#include <cmath>

#include "support/errors.h"

namespace tilewright::nn {
namespace {

constexpr LlamaConfig kSmall{
    .vocabulary = 11, .width = 8, .layers = 1, .heads = 4, .kv_heads = 2, .inner = 12};

TEST(Llama, NamesAndShapesAreThoseOfTheCheckpoints) {
  Context ctx({.cache_directory = ""});
  std::string text;
  for (const auto& [name, tensor] : named_tensors(make_llama(ctx, kSmall)))
    text += name + to_string(tensor.shape()) + "\n";
  EXPECT_EQ(text,
            "model.embed_tokens.weight[11,8]\nmodel.layers.0.input_layernorm.weight[8]\n"
            "model.layers.0.self_attn.q_proj.weight[8,8]\nmodel.layers.0.self_attn.k_proj.weight[4,8]\n"
            "model.layers.0.self_attn.v_proj.weight[4,8]\nmodel.layers.0.self_attn.o_proj.weight[8,8]\n"
            "model.layers.0.post_attention_layernorm.weight[8]\nmodel.layers.0.mlp.gate_proj.weight[12,8]\n"
            "model.layers.0.mlp.up_proj.weight[12,8]\nmodel.layers.0.mlp.down_proj.weight[8,12]\n"
            "model.norm.weight[8]\nlm_head.weight[11,8]\n");
  LlamaConfig tied = kSmall;
  tied.tied = true;
  EXPECT_EQ(named_tensors(make_llama(ctx, tied)).size(), 11U);
}

TEST(Llama, RotaryTurnsPlanes) {
  Context ctx({.cache_directory = "", .seed = 2});
  constexpr Index kHeads = 2, kLength = 5, kWidth = 6, kHalf = kWidth / 2, kOffset = 3;
  const Tensor x = ctx.randn({1, kHeads, kLength, kWidth});
  const auto in = x.to_vector<double>(), out = rotary(x, 100, kOffset).to_vector<double>();
  for (Index row = 0; row < kHeads * kLength; ++row)
    for (Index i = 0; i < kHalf; ++i) {
      const double angle =
          static_cast<double>(kOffset + row % kLength) / std::pow(100.0, static_cast<double>(i) / kHalf);
      const auto a = static_cast<std::size_t>(row * kWidth + i), b = a + kHalf;
      EXPECT_NEAR(out[a], in[a] * std::cos(angle) - in[b] * std::sin(angle), 1e-5);
      EXPECT_NEAR(out[b], in[b] * std::cos(angle) + in[a] * std::sin(angle), 1e-5);
    }
  EXPECT_THROW(rotary(ctx.ones({1, 1, 2, 3})), Error);
}

TEST(Llama, MistakesAreErrors) {
  Context ctx({.cache_directory = ""});
  for (const auto& [width, heads, kv_heads] :
       {std::array<Index, 3>{8, 3, 1}, {8, 4, 3}, {12, 4, 4}, {8, 0, 1}}) {
    LlamaConfig config = kSmall;
    config.width = width;
    config.heads = heads;
    config.kv_heads = kv_heads;
    EXPECT_THROW(make_llama(ctx, config), Error) << width << " " << heads << " " << kv_heads;
  }
  LlamaConfig grouped = kSmall;
  grouped.kv_heads = 3;
  test::expect_says([&] { make_llama(ctx, grouped); },
                    {"make_llama: kv_heads = 3 does not divide heads = 4", "llama_test.cpp:"});
  const Llama model = make_llama(ctx, kSmall);
  EXPECT_THROW(llama_features(model, ctx.zeros({4}, DType::i64), kSmall), Error);
  LlamaConfig other = kSmall;
  other.heads = 3;
  test::expect_says([&] { llama_logits(model, ctx.zeros({1, 4}, DType::i64), other); },
                    {"llama_logits: 3 heads do not divide the width 8", "llama_test.cpp:"});
}

TEST(Llama, HasAsManyHeadsOfKeysAsOfQueriesWhereNoneAreGiven) {
  Context ctx({.cache_directory = "", .seed = 3});
  LlamaConfig config{.vocabulary = 11, .width = 8, .layers = 1, .heads = 4, .inner = 12};
  const Llama model = make_llama(ctx, config);
  EXPECT_EQ(model.model.layers[0].self_attn.k_proj.weight.shape(), (Shape{8, 8}));
  const Tensor tokens = ctx.randint({2, 5}, 11);
  const auto own = llama_logits(model, tokens, config).to_vector<float>();
  config.kv_heads = 4;
  EXPECT_EQ(llama_logits(model, tokens, config).to_vector<float>(), own);
}

TEST(Positions, CountAlongAnAxis) {
  Context ctx({.cache_directory = ""});
  const Tensor x = ctx.zeros({2, 3});
  EXPECT_EQ(positions(x, -1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(positions(x, 0).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(positions(ctx.zeros({0}), 0).size(), 0);
  EXPECT_THROW((void)positions(x, 2), Error);
}

}  // namespace
}  // namespace tilewright::nn
