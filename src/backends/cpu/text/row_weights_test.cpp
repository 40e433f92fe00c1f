// Which exponentials are weights of rows, and what becomes of those that are subnormal.
#include "backends/cpu/text/row_weights.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"
#include "backends/cpu/testing.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tilewright::cpu {
namespace {

using namespace tile;

enum class Of : unsigned char { largest, masked_largest, mean, other_rows, at_least_zero };
enum class For : unsigned char { dot, dot_and_sum, cast_to_dot, store, dot_and_store, sum, masked_dot };

// exp(x - m) of rows of x, and what is made of it.
Kernel weights(Of of, For use) {
  Builder k("weights");
  const View x = k.view("x", DType::f32, {16, 40}), v = k.view("v", DType::f32, {40, 32}),
             out = k.view("out", DType::f32, {16, 32}), sums = k.view("sums", DType::f32, {16}),
             kept = k.view("kept", DType::f32, {16, 40});
  const Value at = k.literal_int(DType::i64, 0);
  const Value scores = k.load(x, {at, at}, {.shape = {16, 40}});
  Value row = scores;
  if (of == Of::masked_largest)
    row = where(k.broadcast(k.expand(k.arange(40), 0), {16, 40}) < 30, scores,
                k.literal(DType::f32, -std::numeric_limits<double>::infinity(), {16, 40}));
  if (of == Of::other_rows) row = scores * 2.0;
  Value m = k.expand(k.reduce(of == Of::mean ? Monoid::sum : Monoid::max, row, 1), 1);
  m = max(m, k.literal(DType::f32, of == Of::at_least_zero ? 0 : -1e30, {16, 1}));
  const Value w = exp(scores - k.broadcast(m, {16, 40}));
  const auto multiply = [&](const Value& a, const Value& b) {
    k.store(out, {at, at}, k.dot(a, b, k.literal(DType::f32, 0.0, {16, 32})));
  };
  const Value right = k.load(v, {at, at}, {.shape = {40, 32}});
  if (use == For::cast_to_dot) multiply(k.cast(w, DType::bf16), k.cast(right, DType::bf16));
  if (use == For::dot || use == For::dot_and_sum || use == For::dot_and_store) multiply(w, right);
  if (use == For::masked_dot) {
    const Value mask = k.broadcast(k.expand(k.arange(40), 0), {16, 40}) < 30;
    multiply(where(mask, w, k.literal(DType::f32, 0.0, {16, 40})), right);
  }
  if (use == For::sum || use == For::dot_and_sum) k.store(sums, {at}, k.reduce(Monoid::sum, w, 1));
  if (use == For::store || use == For::dot_and_store) k.store(kept, {at, at}, w);
  return k.finish({{{1, 1}}});
}

TEST(RowWeightsTest, AreBelowALargestAndOnlyMultipliedAndAddedUp) {
  for (const Of of : {Of::largest, Of::masked_largest})
    for (const For use : {For::dot, For::dot_and_sum, For::cast_to_dot}) {
      const Kernel kernel = weights(of, use);
      EXPECT_EQ(row_weights(kernel).size(), 1u) << tile::print(kernel);
      const std::string text =
          print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
      EXPECT_NE(text.find("exp_weight("), std::string::npos) << text;
    }
}

TEST(RowWeightsTest, WhatIsStoredOrBelowSomethingElseKeepsItsBits) {
  for (const For use : {For::store, For::dot_and_store, For::sum})
    EXPECT_TRUE(row_weights(weights(Of::largest, use)).empty());
  for (const Of of : {Of::mean, Of::other_rows})
    EXPECT_TRUE(row_weights(weights(of, For::dot_and_sum)).empty());
}

// Where all weights may be subnormal, zeros would divide by zero.
TEST(RowWeightsTest, TheLargestMustBeAmongThem) {
  EXPECT_TRUE(row_weights(weights(Of::at_least_zero, For::dot_and_sum)).empty());
  EXPECT_TRUE(row_weights(weights(Of::largest, For::masked_dot)).empty());
  EXPECT_EQ(row_weights(weights(Of::masked_largest, For::masked_dot)).size(), 1u);
}

using RowWeightsOnIsa = testing::OnIsa;

TEST_P(RowWeightsOnIsa, ProductsAreTheInterpreters) {
  for (const Of of : {Of::largest, Of::masked_largest})
    for (const For use : {For::dot, For::dot_and_sum, For::cast_to_dot}) check(weights(of, use));
}

TEST_P(RowWeightsOnIsa, SubnormalsAreZeroAndAllElseIsTheExponential) {
  const auto run = testing::build<void(const float*, float*, float*)>(
      "#include \"tw_cpu/weight.h\"\nusing namespace tw;\n"
      "extern \"C\" void run(const f32* x, f32* weight, f32* plain) {\n"
      "  store(weight, exp_weight(load(x)));\n  store(plain, exp(load(x)));\n}\n",
      "run", testing::options_for(GetParam()));
  std::array<float, 16> x = {0,
                             -1,
                             -50,
                             -87,
                             -87.33f,
                             -87.34f,
                             -88,
                             -95,
                             -103.f,
                             -104.f,
                             -1e30f,
                             1,
                             80,
                             -87.2f,
                             -std::numeric_limits<float>::infinity(),
                             std::nanf("")};
  for (int shift = 0; shift < 4; ++shift) {  // the shortest vectors have four lanes
    std::array<float, 16> weight{}, plain{};
    run.function(x.data(), weight.data(), plain.data());
    const int lanes = host_target(GetParam()).vector_bytes / 4;
    for (int i = 0; i < lanes; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (std::isnan(x[at]))
        EXPECT_TRUE(std::isnan(weight[at]));
      else
        EXPECT_EQ(weight[at], std::fpclassify(plain[at]) == FP_SUBNORMAL ? 0.f : plain[at]) << x[at];
    }
    std::rotate(x.begin(), x.begin() + 4, x.end());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, RowWeightsOnIsa, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
