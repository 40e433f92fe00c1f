// Rows, columns and all of a product reduced in the kernel that stores it.
#include "support/kernel_folder.h"
#include "support/open_device.h"

#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tilewright {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct EpilogueCase {
  const char* name;
  Function function;
  std::vector<Shape> shapes;
  std::size_t kernels;  // of the compiled function: the product's, and one for each set of axes in parts
};

// Blocks of at most 516 by 512: a larger result is reduced in parts, and none of the extents is a whole
// number of blocks or vectors.
const std::vector<EpilogueCase>& epilogue_cases() {
  static const std::vector<EpilogueCase> all = {
      {"the largest of each row",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, max(abs(y), {1})};
       },
       {{300, 70}, {70, 1301}},
       2},
      {"the sum of each column",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, sum(y, {0})};
       },
       {{1301, 70}, {70, 130}},
       2},
      {"the least of all",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, min(y, {0, 1})};
       },
       {{1301, 33}, {33, 1100}},
       2},
      {"of a tile that holds all of it",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, max(y, {1})};
       },
       {{1301, 70}, {70, 77}},
       1},
      {"rows, columns and all at once",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, max(y, {1}), sum(y * y, {1}), min(y, {0}), max(abs(y), {0, 1})};
       },
       {{1301, 33}, {33, 1100}},
       4},
      {"a scale of the largest, of what bias and gelu give",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = gelu(matmul(x[0], x[1]) + x[2]);
         return {y, 448.f / max(abs(y), {1}, Keep::yes)};
       },
       {{300, 70}, {70, 1301}, {1301}},
       2},
      {"a mean square beside the last one",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]) + x[2];
         return {y, rsqrt(mean(y * y, {1}) + 1e-5f), maximum(x[3], max(y, {1}))};
       },
       {{300, 70}, {70, 1301}, {300, 1301}, {300}},
       2},
      {"heads in a batch",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, max(y, {2}), max(y, {1}), sum(y, {0, 1})};
       },
       {{3, 530, 40}, {3, 40, 530}},
       4},
      {"a softmax of rows that a tile holds",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {softmax(matmul(x[0], x[1]) * 0.1f)};
       },
       {{1301, 70}, {70, 77}},
       1},
      {"a softmax of columns that a tile holds",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {softmax(matmul(x[0], x[1]) * 0.1f, 0), x[2] * 2.f};
       },
       {{100, 70}, {70, 1301}, {7}},
       2},
      {"blocks of rows, each divided by its largest",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = reshape(matmul(x[0], x[1]), {300, 9, 128});
         const Tensor scale = max(abs(y), {2}, Keep::yes) / 448.f;
         return {reshape(y / scale, {300, 1152}), reshape(scale, {300, 9})};
       },
       {{300, 70}, {70, 1152}},
       1},
      {"square blocks, each divided by its largest",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = reshape(matmul(x[0], x[1]), {5, 64, 9, 64});
         const Tensor scale = max(abs(y), {1, 3}, Keep::yes) / 448.f;
         return {reshape(y / scale, {320, 576}), reshape(scale, {5, 9})};
       },
       {{320, 70}, {70, 576}},
       1},
      {"of what is not the product's type",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         const Tensor y = matmul(x[0], x[1]);
         return {y, sum(cast(y > 0.5f, DType::i32), {1})};
       },
       {{300, 70}, {70, 1301}},
       2},
  };
  return all;
}

class EpilogueReductions : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(EpilogueReductions, AreWhatTheStoredProductGives) {
  for (const EpilogueCase& c : epilogue_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> args;
    args.reserve(c.shapes.size());
    for (const Shape& s : c.shapes) args.push_back(ctx_.randn(s));
    const auto compiled = compile(c.function);
    const std::vector<Tensor> got = compiled(args), want = c.function(args);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].shape(), want[i].shape());
      const auto g = cast(got[i], DType::f32).to_vector<float>(),
                 w = cast(want[i], DType::f32).to_vector<float>();
      // Sums of up to 1700 numbers of a few tens, in another order.
      for (std::size_t e = 0; e < g.size(); ++e)
        ASSERT_NEAR(g[e], w[e], 1e-3 + 1e-4 * std::abs(w[e])) << i << ", " << e;
    }
    // The interpreter's rates say nothing about reading a result again.
    if (std::string(GetParam()) != "cpu") continue;
    const std::size_t kernels = compiled.report().front().kernels.size();
    EXPECT_GE(kernels, c.kernels) << compiled.explain();
    EXPECT_LE(kernels, c.kernels + test::kernels_more_on_this_cpu()) << compiled.explain();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EpilogueReductions, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
