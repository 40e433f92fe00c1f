// What shares a matmul's kernel: views of its operands, arithmetic before and after it.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Case {
  const char* name;
  Function function;
  std::vector<Shape> shapes;
  std::size_t kernels;  // of the compiled function
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"bias and gelu after it",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {gelu(matmul(x[0], x[1]) + x[2])}; },
       {{130, 70}, {70, 129}, {129}},
       1},
      {"two results",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, tanh(y) * x[2]};
       },
       {{33, 20}, {20, 65}, {33, 65}},
       1},
      {"a transposed operand",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {matmul(x[0], transpose(x[1], {1, 0})) * 2.f};
       },
       {{40, 17}, {50, 17}},
       1},
      {"both transposed, one of them sliced",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {matmul(transpose(x[0], {1, 0}), transpose(slice(x[1], 0, {3, 53}), {1, 0}))};
       },
       {{17, 40}, {60, 17}},
       1},
      {"weights for every batch",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {matmul(x[0], x[1]) + x[2]}; },
       {{3, 5, 7, 31}, {31, 9}, {9}},
       1},
      {"heads beside one another in memory",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const auto heads = [](const Tensor& t) {
           return transpose(reshape(t, {2, 10, 4, 8}), {0, 2, 1, 3});
         };
         return {matmul(heads(x[0]), transpose(heads(x[1]), {0, 1, 3, 2}))};
       },
       {{2, 10, 32}, {2, 10, 32}},
       1},
      {"heads put together again",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {matmul(reshape(transpose(x[0], {0, 2, 1, 3}), {2, 10, 32}), x[1])};
       },
       {{2, 4, 10, 8}, {32, 24}},
       1},
      {"one row",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {silu(matmul(x[0], x[1]))}; },
       {{1, 300}, {300, 70}},
       1},
      {"one column",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {silu(matmul(x[0], x[1]))}; },
       {{70, 300}, {300, 1}},
       1},
      {"a depth of one",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {matmul(x[0], x[1]) + 1.f}; },
       {{70, 1}, {1, 33}},
       1},
      {"a depth of none",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {matmul(x[0], x[1]) + x[2]}; },
       {{7, 0}, {0, 33}, {33}},
       1},
      {"one after another",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {matmul(gelu(matmul(x[0], x[1])), x[2])};
       },
       {{20, 30}, {30, 40}, {40, 10}},
       1},
      {"an operand put together from two",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {matmul(concat({x[0], x[1]}, 1), x[2])};
       },
       {{20, 12}, {20, 8}, {20, 30}},
       2},
      {"the sums of its rows",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {sum(matmul(x[0], x[1]), {1})}; },
       {{20, 12}, {12, 30}},
       1},
  };
  return all;
}

class Matmul : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(Matmul, GivesWhatItsPartsGiveInAsManyKernelsAsItNeeds) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> args;
    args.reserve(c.shapes.size());
    for (const Shape& s : c.shapes) args.push_back(ctx_.randn(s));
    const auto compiled = compile(c.function);
    const std::vector<Tensor> got = compiled(args), want = c.function(args);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].shape(), want[i].shape());
      const auto g = got[i].to_vector<float>(), w = want[i].to_vector<float>();
      // Sums of up to 300 products of normal numbers, in another order.
      for (std::size_t e = 0; e < g.size(); ++e) ASSERT_NEAR(g[e], w[e], 3e-5 * (1 + std::abs(w[e]))) << e;
    }
    EXPECT_EQ(compiled.report().front().kernels.size(), c.kernels) << compiled.explain();
  }
}

// Weights of 8 bits with a scale a column, widened on the way into the product.
TEST_P(Matmul, WidensWeightsOnTheWay) {
  const Tensor x = ctx_.randn({24, 64}), scale = ctx_.rand({40}) * 0.01f;
  const Tensor weights = ctx_.randint({64, 40}, 127, DType::i8);
  const auto function = [](const Tensor& a, const Tensor& w, const Tensor& s) {
    return relu(matmul(a, cast(w, DType::f32) * s));
  };
  const auto compiled = compile(function);
  const auto got = compiled(x, weights, scale).to_vector<float>();
  const auto want = function(x, weights, scale).to_vector<float>();
  for (std::size_t e = 0; e < got.size(); ++e)
    ASSERT_NEAR(got[e], want[e], 3e-5 * (1 + std::abs(want[e]))) << e;
  EXPECT_EQ(compiled.report().front().kernels.size(), 1U) << compiled.explain();
}

// No device but a GPU has tensor cores to round for: the same bits, from kernels of the same text, and
// explain() says so.
TEST_P(Matmul, KeepsAllBitsWhereTf32IsAllowedButNotKnown) {
  const Tensor a = ctx_.randn({70, 130}), b = ctx_.randn({130, 50});
  const auto function = [](const Tensor& x, const Tensor& y) { return matmul(x, y) * 2.f; };
  const auto exact = compile(function), allowed = compile(function, {.precision = Precision::tf32});
  EXPECT_EQ(exact(a, b).to_vector<float>(), allowed(a, b).to_vector<float>());
  EXPECT_EQ(allowed.report().front().kernels[0].tile, exact.report().front().kernels[0].tile);
  EXPECT_NE(allowed.explain().find("tf32 allowed and not used: its f32 products are exact"),
            std::string::npos)
      << allowed.explain();
}

INSTANTIATE_TEST_SUITE_P(Devices, Matmul, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
