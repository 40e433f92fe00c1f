// GPT-2: names and shapes of the public checkpoints, gradients beside difference quotients, dropout by key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tilewright/nn/checkpoint.h>
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/text_data.h>
#include <tilewright/tilewright.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/errors.h"

namespace tilewright::nn {
namespace {

constexpr Index kHeads = 2;

class Gpt2Test : public testing::Test {
 protected:
  Context ctx_{{.cache_directory = "", .seed = 9}};
  GPT2 small_ = make_gpt2(ctx_, {.vocabulary = 11, .context = 8, .width = 8, .layers = 1, .heads = kHeads});
  Batch batch_{ctx_.randint({2, 7}, 11, DType::i32), ctx_.randint({2, 7}, 11, DType::i32)};
};

TEST_F(Gpt2Test, NamesAndShapesAreThoseOfTheCheckpoints) {
  std::string text;
  for (const auto& [name, tensor] : named_tensors(small_)) text += name + to_string(tensor.shape()) + "\n";
  EXPECT_EQ(text,
            "wte.weight[11,8]\nwpe.weight[8,8]\nh.0.ln_1.weight[8]\nh.0.ln_1.bias[8]\n"
            "h.0.attn.c_attn.weight[8,24]\nh.0.attn.c_attn.bias[24]\nh.0.attn.c_proj.weight[8,8]\n"
            "h.0.attn.c_proj.bias[8]\nh.0.ln_2.weight[8]\nh.0.ln_2.bias[8]\nh.0.mlp.c_fc.weight[8,32]\n"
            "h.0.mlp.c_fc.bias[32]\nh.0.mlp.c_proj.weight[32,8]\nh.0.mlp.c_proj.bias[8]\nln_f.weight[8]\n"
            "ln_f.bias[8]\n");
}

// Central differences of step h err by about h² |f'''| / 6 and by the loss's rounding over h.
TEST_F(Gpt2Test, GradientsInFloat64AreDifferenceQuotients) {
  const GPT2 wide = cast_tree(map_tensors([](const Tensor& t) { return t * 2.f; }, small_), DType::f64);
  const auto loss = compile([&](const GPT2& m) {
    const Tensor logits = gpt2_logits(m, batch_.tokens, kHeads);
    return cross_entropy(logits, batch_.targets);
  });
  const GPT2 gradient = value_and_grad([&](const GPT2& m) {
                          return cross_entropy(gpt2_logits(m, batch_.tokens, kHeads), batch_.targets);
                        })(wide)
                            .second;
  const NamedTensors parameters = named_tensors(wide), slopes = named_tensors(gradient);
  constexpr double kStep = 1e-5;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::vector<double> values = parameters[p].tensor.to_vector<double>();
    const std::vector<double> slope = slopes[p].tensor.to_vector<double>();
    for (std::size_t i = p % 5; i < values.size(); i += 1 + values.size() / 3) {
      double around[2];
      for (const int side : {0, 1}) {
        std::vector<double> moved = values;
        moved[i] += side == 0 ? -kStep : kStep;
        NamedTensors changed = parameters;
        changed[p].tensor = ctx_.from(moved, parameters[p].tensor.shape());
        around[side] = loss(with_tensors(wide, changed)).item();
      }
      EXPECT_NEAR((around[1] - around[0]) / (2 * kStep), slope[i], 1e-6 * std::max(1.0, std::abs(slope[i])))
          << parameters[p].name << " " << i;
    }
  }
}

// Loss and gradients as the model is written, its products in another type: parameters and gradients are f32.
// What they are off by is less where the type has more bits.
TEST_F(Gpt2Test, APrecisionIsOfItsProducts) {
  const GPT2 model = map_tensors([](const Tensor& t) { return t * 4.f; }, small_);
  const auto of = [&](Precision precision) {
    const auto both = compile(
        [&](const GPT2& m) {
          return value_and_grad(
              [&](const GPT2& p) { return gpt2_loss(p, batch_.tokens, batch_.targets, kHeads); })(m);
        },
        {.precision = precision});
    const auto [loss, gradient] = both(model);
    if (precision == Precision::bf16 || precision == Precision::f16) {
      const std::string said = both.report().front().precision;
      EXPECT_NE(said.find(fmt::format("products of {} with sums of f32", name(precision))), said.npos)
          << said;
      EXPECT_EQ(said.find("of other types"), said.npos) << said;
    }
    std::vector<double> all{loss.item()};
    for (const Tensor& t : tensors_of(gradient)) {
      EXPECT_EQ(t.dtype(), DType::f32);
      for (const double v : t.to_vector<double>()) all.push_back(v);
    }
    return all;
  };
  const std::vector<double> exact = of(Precision::f32);
  EXPECT_EQ(of(Precision::tf32), exact);  // no unit of a CPU rounds to it
  const auto off_by = [&](const std::vector<double>& got) {
    double squares = 0;
    for (std::size_t i = 0; i < got.size(); ++i) squares += (got[i] - exact[i]) * (got[i] - exact[i]);
    return std::sqrt(squares);
  };
  const double bf16 = off_by(of(Precision::bf16)), f16 = off_by(of(Precision::f16));
  EXPECT_LT(f16, bf16 / 3);  // three bits more: an eighth, if all roundings were alike
  EXPECT_GT(f16, 0);
}

TEST_F(Gpt2Test, AKeyDropsTheSameAndAnotherDropsOthers) {
  const auto loss = [&](Index key) {
    return gpt2_loss(small_, batch_.tokens, batch_.targets, kHeads,
                     Dropout(ctx_.scalar(static_cast<double>(key), DType::i64), 0.3))
        .item();
  };
  const double kept = gpt2_loss(small_, batch_.tokens, batch_.targets, kHeads).item();
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  EXPECT_NE(loss(1), kept);
  Dropout uses(ctx_.scalar(5, DType::i64), 0.5);
  const Tensor ones = ctx_.ones({64});
  EXPECT_NE(uses(ones).to_vector<float>(), uses(ones).to_vector<float>());  // each use has a mask of its own
}

TEST_F(Gpt2Test, MistakesAreErrors) {
  EXPECT_THROW(make_gpt2(ctx_, {.width = 8, .layers = 1, .heads = 3}), Error);
  EXPECT_THROW(gpt2_features(small_, ctx_.zeros({1, 9}, DType::i64), kHeads),
               Error);  // longer than the context
  EXPECT_THROW(gpt2_features(small_, ctx_.zeros({9}, DType::i64), kHeads), Error);
  const Tensor tokens = ctx_.zeros({1, 3}, DType::i64);
  const std::string width = std::to_string(small_.wpe.weight.shape()[1]);
  test::expect_says([&] { gpt2_logits(small_, tokens, 5); },
                    {"gpt2_logits: 5 heads do not divide the width " + width, "gpt2_test.cpp:"});
  test::expect_says([&] { gpt2_loss(small_, tokens, tokens, 5); }, {"gpt2_loss: 5 heads do not divide"});
}

class CheckpointTest : public Gpt2Test {
 protected:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("tw_checkpoint_" + std::to_string(::getpid()));
  ~CheckpointTest() override { std::filesystem::remove(path_); }
  std::string message_of_loading(const GPT2& like) {
    try {
      (void)load_checkpoint(ctx_, path_, like);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(CheckpointTest, WhatWasSavedComesBackToTheBit) {
  save_checkpoint(path_, small_, {{"step", "17"}});
  const auto loaded = load_checkpoint(ctx_, path_, small_);
  EXPECT_EQ(loaded.word("step"), "17");
  EXPECT_EQ(loaded.word("other"), "");
  const NamedTensors was = named_tensors(small_), is = named_tensors(loaded.tree);
  for (std::size_t i = 0; i < was.size(); ++i)
    EXPECT_EQ(was[i].tensor.to_vector<float>(), is[i].tensor.to_vector<float>()) << was[i].name;
}

TEST_F(CheckpointTest, AFlippedBitAnywhereIsAnError) {
  save_checkpoint(path_, small_, {{"step", "17"}});
  std::ifstream in(path_, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  int found = 0;
  for (std::size_t at = 8; at < bytes.size(); at += bytes.size() / 61) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << damaged;
    const std::string message = message_of_loading(small_);
    // Padding in front of an aligned tensor is nobody's.
    if (message.empty()) {
      EXPECT_EQ(bytes[at], '\0') << at;
    }
    found += message.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 50);
}

TEST_F(CheckpointTest, AnotherModelsNamesAndShapesAreListed) {
  save_checkpoint(path_, small_);
  const GPT2 other =
      make_gpt2(ctx_, {.vocabulary = 11, .context = 8, .width = 12, .layers = 2, .heads = kHeads});
  const std::string message = message_of_loading(other);
  for (const char* part : {"wte.weight is f32[11,8], the tree's is f32[11,12]", "h.0.ln_1.bias", "more"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(TextData, BatchesDependOnSeedAndNumberAlone) {
  const ByteVocabulary vocabulary("hello world");
  EXPECT_EQ(vocabulary.bytes(), " dehlorw");
  const auto tokens = vocabulary.encode("hello world");
  EXPECT_EQ(vocabulary.decode(tokens), "hello world");
  EXPECT_THROW((void)vocabulary.encode("hi"), Error);
  EXPECT_THROW((void)vocabulary.decode({8}), Error);
  Context ctx({.cache_directory = ""});
  const Batch a = random_batch(ctx, tokens, 4, 5, 3, 8), b = random_batch(ctx, tokens, 4, 5, 3, 8);
  EXPECT_EQ(a.tokens.to_vector<std::int32_t>(), b.tokens.to_vector<std::int32_t>());
  EXPECT_NE(a.tokens.to_vector<std::int32_t>(),
            random_batch(ctx, tokens, 4, 5, 3, 9).tokens.to_vector<std::int32_t>());
  const auto own = a.tokens.to_vector<std::int32_t>(), next = a.targets.to_vector<std::int32_t>();
  for (std::size_t i = 0; i + 1 < own.size(); ++i)
    if ((i + 1) % 5 != 0) {
      EXPECT_EQ(next[i], own[i + 1]);
    }
  EXPECT_NO_THROW(random_batch(ctx, tokens, 1, 10, 0, 0));
  EXPECT_THROW(random_batch(ctx, tokens, 1, 11, 0, 0), Error);  // no token follows the last
}

}  // namespace
}  // namespace tilewright::nn
