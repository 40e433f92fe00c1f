// Scans along axes of any length, views of many axes, and numbers drawn below large bounds.
#include "ops/functions.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"

#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tilewright {
namespace {

// Small integers, whose sums f32 holds exactly.
TEST(LongScans, OfAnyLengthAreRight) {
  Context ctx;
  for (const Shape& shape : {Shape{1100000}, Shape{70000, 64}, Shape{1050000, 3}}) {
    SCOPED_TRACE(to_string(shape));
    const Index rows = shape[0], columns = shape.size() / rows;
    std::vector<float> x(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + i / 5) % 5) - 2;
    std::vector<float> sums = x, highest = x;
    for (std::size_t i = static_cast<std::size_t>(columns); i < x.size(); ++i) {
      sums[i] += sums[i - static_cast<std::size_t>(columns)];
      highest[i] = std::max(highest[i], highest[i - static_cast<std::size_t>(columns)]);
    }
    const Tensor t = ctx.from(x, shape);
    EXPECT_EQ(cumsum(t, 0).to_vector<float>(), sums);
    // Its gradient scans from the other end: how many sums an element is part of.
    const std::vector<float> parts =
        grad([](const Tensor& u) { return sum(cumsum(u, 0)); })(t).to_vector<float>();
    for (const Index row : {Index{0}, Index{4096}, rows / 2, rows - 1})
      EXPECT_EQ(parts[static_cast<std::size_t>(row * columns)], static_cast<float>(rows - row)) << row;
  }
}

// Kernels for rows of any length keep none of them whole: their scans are cut all the same.
TEST(LongScans, AreCutWhereNoRowIsKept) {
  tile::Target target = test::h200_target();
  target.row_bytes = 0;
  for (const Shape& shape : {Shape{3000000}, Shape{5000, 7}, Shape{100}}) {
    ir::Graph graph("scan");
    graph.set_outputs({ops::cumsum({&graph, graph.add_input("x", {DType::f32, shape})}, 0).id});
    EXPECT_FALSE(passes::run_pipeline(graph, target).plan.kernels.empty()) << to_string(shape);
  }
}

TEST(ManyAxes, AreTransposed) {
  Context ctx;
  constexpr int kAxes = 11;
  std::vector<Index> perm(kAxes);
  std::iota(perm.rbegin(), perm.rend(), 0);
  const Shape shape(std::vector<Index>(kAxes, 2));
  std::vector<float> x(static_cast<std::size_t>(shape.size()));
  std::iota(x.begin(), x.end(), 0.f);
  const std::vector<float> y =
      compile([&](const Tensor& t) { return transpose(t, perm) * 2.f; })(ctx.from(x, shape))
          .to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t reversed = 0;
    for (int bit = 0; bit < kAxes; ++bit) reversed |= (i >> bit & 1) << (kAxes - 1 - bit);
    ASSERT_EQ(y[i], 2 * x[reversed]) << i;
  }
}

// Each third of the range has a third of the draws, within five deviations.
TEST(RandomIntegers, AreSpreadEvenly) {
  Context ctx;
  constexpr Index kDraws = 200000;
  for (const Index high : {Index{3}, Index{4097}, Index{1000000000}, Index{3000000000}, Index{1} << 32}) {
    const std::vector<std::int64_t> drawn = ctx.randint({kDraws}, high, DType::i64).to_vector<std::int64_t>();
    for (const Index part : {0, 1, 2}) {
      const Index low = (high * part + 2) / 3, end = (high * (part + 1) + 2) / 3;
      const auto inside =
          std::count_if(drawn.begin(), drawn.end(), [&](std::int64_t v) { return v >= low && v < end; });
      const double share = static_cast<double>(end - low) / static_cast<double>(high);
      EXPECT_NEAR(static_cast<double>(inside) / kDraws, share, 5 * std::sqrt(share * (1 - share) / kDraws))
          << high << ", part " << part;
    }
  }
}

}  // namespace
}  // namespace tilewright
