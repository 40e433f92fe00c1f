// checkpoint(f): the same gradients, of values that are made again, in less memory.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/pipeline.h"
#include "support/errors.h"
#include "support/h200_target.h"
#include "support/kernel_folder.h"
#include "support/training_step.h"

namespace tilewright::test {
namespace {

constexpr Index kWidth = 64, kRows = 256, kLayers = 8;

// A residual layer with an inside that is four times as wide.
struct Layer {
  Tensor up, down;
  TILEWRIGHT_FIELDS(up, down)
};
Tensor apply_layer(const Layer& layer, const Tensor& x) {
  const Tensor inside = gelu(matmul(layer_norm(x, std::nullopt, std::nullopt), layer.up));
  return x + matmul(inside, layer.down);
}
struct Network {
  std::vector<Layer> layers;
  TILEWRIGHT_FIELDS(layers)
};
Network make_network(Context& ctx) {
  ctx.set_seed(5);
  Network network;
  for (Index i = 0; i < kLayers; ++i)
    network.layers.push_back(
        {.up = ctx.randn({kWidth, 4 * kWidth}) * 0.1, .down = ctx.randn({4 * kWidth, kWidth}) * 0.05});
  return network;
}

enum class How { plain, checkpointed, captured };

Tensor loss_of(const Network& network, const Tensor& input, How how) {
  Tensor x = input;
  const auto again = checkpoint(apply_layer);
  for (const Layer& layer : network.layers) {
    if (how == How::plain) x = apply_layer(layer, x);
    if (how == How::checkpointed) x = again(layer, x);
    if (how == How::captured) x = checkpoint([&](const Tensor& t) { return apply_layer(layer, t); })(x);
  }
  return mean(x * x);
}

struct Trained {
  std::vector<std::vector<float>> gradients;
  std::int64_t peak_bytes = 0, arena_bytes = 0;
  std::string explained;
};
Trained train(const char* device, How how, CompileOptions options = {}) {
  Context ctx({.device = device, .cache_directory = test::kernel_folder()});
  const Network network = make_network(ctx);
  const Tensor x = ctx.randn({kRows, kWidth});
  const auto step = compile(
      [how](const Network& n, const Tensor& in) {
        return value_and_grad([&](const Network& own) { return loss_of(own, in, how); })(n);
      },
      std::move(options));
  (void)step(network, x);
  ctx.reset_peak_memory();
  const auto [value, gradient] = step(network, x);
  Trained out{.peak_bytes = static_cast<std::int64_t>(ctx.memory().peak_bytes)};
  for (const Tensor& t : tensors_of(gradient)) out.gradients.push_back(t.to_vector<float>());
  out.gradients.push_back(value.to_vector<float>());
  out.arena_bytes = step.report().front().arena_bytes;
  out.explained = step.explain();
  return out;
}

// Kernels are cut at other places, so that sums may be added up in another order: of each gradient's largest
// number by a few roundings of the longest sum.
constexpr double kBoundF32 = 64 * 0x1p-24 * 16;  // √256 rows, some tens of operations
void expect_near(const Trained& got, const Trained& wanted, double bound = kBoundF32) {
  ASSERT_EQ(got.gradients.size(), wanted.gradients.size());
  for (std::size_t t = 0; t < got.gradients.size(); ++t) {
    const std::vector<float>&a = got.gradients[t], &b = wanted.gradients[t];
    ASSERT_EQ(a.size(), b.size());
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(b[i])));
      worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    EXPECT_LE(worst, bound * largest) << "tensor " << t;
  }
}

class Checkpoints : public ::testing::TestWithParam<const char*> {};

// The products of the layers are rounded to bf16, within a call as without one: what a sum in another order
// moves across a rounding differs by one of bf16 in each of the 16 products.
TEST_P(Checkpoints, MeetNarrowProducts) {
  const CompileOptions narrow{.precision = Precision::bf16};
  const Trained plain = train(GetParam(), How::plain, narrow),
                again = train(GetParam(), How::checkpointed, narrow);
  expect_near(again, plain, 16 * 0x1p-8);
  EXPECT_LT(again.arena_bytes, plain.arena_bytes / 2);
  EXPECT_THAT(again.explained, testing::HasSubstr("precision bf16"));
  const auto products = [](const std::string& text) {
    const std::size_t at = text.find("precision bf16");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(products(again.explained), products(plain.explained));
}

TEST_P(Checkpoints, GiveTheGradientsInLessMemory) {
  const Trained plain = train(GetParam(), How::plain);
  for (const How how : {How::checkpointed, How::captured}) {
    const Trained again = train(GetParam(), how);
    expect_near(again, plain);
    // The inside of one layer is there at a time, of eight.
    EXPECT_LT(again.arena_bytes, plain.arena_bytes / 2);
    EXPECT_LT(again.peak_bytes, plain.peak_bytes - (plain.arena_bytes - again.arena_bytes) * 9 / 10);
    EXPECT_THAT(again.explained, testing::ContainsRegex("memory: temporaries take .* launches are repeated"));
  }
}

TEST_P(Checkpoints, FitABudgetAsWell) {
  const Trained again = train(GetParam(), How::checkpointed);
  const std::int64_t held = again.peak_bytes - again.arena_bytes;
  const std::int64_t budget = held + again.arena_bytes * 19 / 20;
  const Trained less = train(GetParam(), How::checkpointed, {.memory_budget = budget});
  EXPECT_EQ(less.gradients, again.gradients);
  EXPECT_LT(less.arena_bytes, again.arena_bytes);
}

// A block of a transformer, whose attention and whose bf16 products have kernels of many parts.
Tensor apply_block(const std::vector<Tensor>& weights, const Tensor& x) {
  const auto narrow = [](const Tensor& t) { return cast(t, DType::bf16); };
  const auto product = [&](const Tensor& a, const Tensor& w) {
    return cast(matmul(narrow(a), narrow(w)), DType::f32);
  };
  const auto heads = [](const Tensor& t) { return swap_axes(reshape(t, {4, 64, 2, kWidth / 2}), 1, 2); };
  const std::vector<Tensor> qkv =
      split(product(layer_norm(x, std::nullopt, std::nullopt), weights[0]), 2, {kWidth, kWidth, kWidth});
  const Tensor attended = attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {.mask = causal_mask()});
  const Tensor y = x + product(reshape(swap_axes(attended, 1, 2), {4, 64, kWidth}), weights[1]);
  return y + product(gelu(product(layer_norm(y, std::nullopt, std::nullopt), weights[2])), weights[3]);
}

TEST(CheckpointedBlocks, OfATransformerTakeLessMemory) {
  Context ctx({.cache_directory = test::kernel_folder()});
  ctx.set_seed(9);
  std::vector<std::vector<Tensor>> blocks;
  blocks.reserve(6);
  for (int i = 0; i < 6; ++i)
    blocks.push_back({ctx.randn({kWidth, 3 * kWidth}) * 0.1, ctx.randn({kWidth, kWidth}) * 0.1,
                      ctx.randn({kWidth, 4 * kWidth}) * 0.1, ctx.randn({4 * kWidth, kWidth}) * 0.05});
  const Tensor input = ctx.randn({4, 64, kWidth});
  const auto slopes_by = [](const auto& apply) {
    return compile([apply](const std::vector<std::vector<Tensor>>& all, const Tensor& in) {
      const auto loss = [&](const std::vector<std::vector<Tensor>>& own) {
        Tensor x = in;
        for (const std::vector<Tensor>& block : own) x = apply(block, x);
        return mean(x * x);
      };
      return grad(loss)(all);
    });
  };
  const auto kept = slopes_by(apply_block);
  const auto again = slopes_by(checkpoint(apply_block));
  const auto wanted = kept(blocks, input), got = again(blocks, input);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t w = 0; w < 4; ++w) {
      const double largest = max(abs(wanted[b][w])).item();
      // A value that is rounded to bf16 at one place more or less is off by 2⁻⁹ of itself.
      EXPECT_LT(max(abs(got[b][w] - wanted[b][w])).item(), 0x1p-7 * largest) << b << " " << w;
    }
  const SpecialisationReport one = kept.report().front(), other = again.report().front();
  EXPECT_LT(other.arena_bytes, one.arena_bytes / 2) << other.memory;
  // Layers stay equal: their kernels are written once, however many there are.
  EXPECT_LT(other.kernels.size(), one.kernels.size() * 2) << other.memory;
}

// On a GPU other kernels are chosen, and attention's gradient is one that reads no scores.
TEST(CheckpointedBlocks, OfAGpt2TakeLessMemoryOnAnH200) {
  const auto planned = [](bool checkpointed) {
    return passes::run_pipeline(
        graph_of(TrainingStep{.layers = 4, .batch = 8, .compute = DType::bf16, .checkpointed = checkpointed}),
        h200_target());
  };
  const passes::Compiled kept = planned(false), again = planned(true);
  EXPECT_EQ(again.taken_apart, std::vector<std::string>{});
  ASSERT_TRUE(again.memory);
  EXPECT_LT(again.plan.arena_bytes, kept.plan.arena_bytes) << to_string(*again.memory);
  EXPECT_LT(again.memory->more_us, again.memory->all_us / 3) << "a forward pass is a third of a step";
}

INSTANTIATE_TEST_SUITE_P(Devices, Checkpoints, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

class Checkpointed : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
};

Tensor cubed_sine(const Tensor& x) { return sin(x * x * x); }

TEST_F(Checkpointed, ValuesAndDerivativesOfAnyOrderAreThoseOfTheFunction) {
  const Tensor x = ctx_.rand({32});
  const auto once = checkpoint(cubed_sine);
  const auto values = [](const Tensor& t) { return t.to_vector<float>(); };
  EXPECT_EQ(values(once(x)), values(cubed_sine(x)));
  const auto loss = [](const auto& f) { return [f](const Tensor& t) { return sum(f(t)); }; };
  EXPECT_EQ(values(grad(loss(once))(x)), values(grad(loss(cubed_sine))(x)));
  const auto slope = [&](const auto& f) { return [=](const Tensor& t) { return sum(grad(loss(f))(t)); }; };
  const std::vector<float> got = values(grad(slope(once))(x)), wanted = values(grad(slope(cubed_sine))(x));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
}

TEST_F(Checkpointed, OutsideOfGradientsAndInsideAnotherItIsTheFunction) {
  const Tensor x = ctx_.rand({32});
  const auto graph_of = [&](const auto& f) {
    const auto compiled = compile(f);
    (void)compiled(x);
    return compiled.report().front().graph;
  };
  EXPECT_EQ(graph_of([](const Tensor& t) { return checkpoint(cubed_sine)(t); }), graph_of(cubed_sine));
  const auto marks = [&](const auto& f) {
    const std::string graph =
        graph_of([f](const Tensor& t) { return grad([f](const Tensor& u) { return sum(f(u)); })(t); });
    std::size_t count = 0;
    for (std::size_t at = graph.find("= checkpoint "); at != std::string::npos;
         at = graph.find("= checkpoint ", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(marks(checkpoint(cubed_sine)), 2U);
  const auto nested = [](const Tensor& t) { return exp(checkpoint(cubed_sine)(t)); };
  EXPECT_EQ(marks(checkpoint(nested)), 2U);
}

TEST_F(Checkpointed, TreesGoInAndOut) {
  const auto both = checkpoint(
      [](const std::vector<Tensor>& in, const Tensor& x) { return std::pair{in[0] * x, in[1] + sin(x)}; });
  const auto loss = [&](const Tensor& x, const Tensor& y) {
    const auto [product, total] = both({x, y}, x * y);
    return sum(product * total);
  };
  const auto plain = [](const Tensor& x, const Tensor& y) { return sum(x * (x * y) * (y + sin(x * y))); };
  const Tensor x = ctx_.rand({16}), y = ctx_.rand({16});
  const auto [value, slopes] = value_and_grad<0, 1>(loss)(x, y);
  const auto [wanted, wanted_slopes] = value_and_grad<0, 1>(plain)(x, y);
  EXPECT_NEAR(value.item(), wanted.item(), 1e-5);
  const auto check = [](const Tensor& a, const Tensor& b) { EXPECT_LT(max(abs(a - b)).item(), 1e-5); };
  check(std::get<0>(slopes), std::get<0>(wanted_slopes));
  check(std::get<1>(slopes), std::get<1>(wanted_slopes));
}

TEST_F(Checkpointed, MistakesInsideAreTheFunctions) {
  const Tensor x = ctx_.ones({2, 3});
  const auto wrong = [](const Tensor& t) {
    return sum(checkpoint([](const Tensor& u) { return matmul(u, u); })(t));
  };
  expect_says([&] { grad(wrong)(x); }, {"matmul", "checkpoint_test.cpp:"});
}

TEST_F(Checkpointed, KernelsServeTheseSizesAlone) {
  const auto slope = compile(
      [](const Tensor& t) { return grad([](const Tensor& u) { return sum(checkpoint(cubed_sine)(u)); })(t); },
      {.dynamic = {{0, 0}}});
  for (const Index size : {32, 48, 64}) {
    const Tensor x = ctx_.rand({size});
    EXPECT_EQ(slope(x).to_vector<float>(),
              grad([](const Tensor& u) { return sum(cubed_sine(u)); })(x).to_vector<float>());
  }
  EXPECT_THAT(slope.explain(), testing::HasSubstr("checkpoint()"));
}

TEST_F(Checkpointed, EagerGradientsOfSeveralSizesAreRight) {
  const auto twice = [](const auto& f) { return [f](const Tensor& u) { return sum(f(f(u))); }; };
  for (const Index size : {32, 48, 64, 80}) {
    const Tensor x = ctx_.rand({size});
    const Tensor off = grad(twice(checkpoint(cubed_sine)))(x) - grad(twice(cubed_sine))(x);
    EXPECT_LT(max(abs(off)).item(), 1e-5) << size;
  }
}

}  // namespace
}  // namespace tilewright::test
