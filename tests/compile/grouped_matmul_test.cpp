// Products with a matrix for each group of rows: values against loops on the host, one kernel that reads each
// matrix where it lies, groups that are none, counts, and what users do wrong.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using test::expect_says;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Row r of x (rows, K) times w[group] (K, N), of which group < 0 is nothing.
std::vector<double> host_rows(const std::vector<float>& x, const std::vector<float>& w, Index k, Index n,
                              const std::function<Index(Index row)>& group) {
  const Index rows = static_cast<Index>(x.size()) / k;
  std::vector<double> y(at(rows * n));
  for (Index r = 0; r < rows; ++r) {
    const Index g = group(r);
    for (Index p = 0; p < k && g >= 0; ++p)
      for (Index c = 0; c < n; ++c)
        y[at(r * n + c)] +=
            static_cast<double>(x[at(r * k + p)]) * static_cast<double>(w[at((g * k + p) * n + c)]);
  }
  return y;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t e = 0; e < got.size(); ++e)
    ASSERT_NEAR(static_cast<double>(got[e]), want[e], 2e-5 * (1 + std::abs(want[e]))) << e;
}

class GroupedMatmul : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(GroupedMatmul, TakesTheMatrixOfEachBlockInOneKernel) {
  const Index k = 40, n = 70, groups = 3;
  for (const Index height : {1, 16, 33}) {
    SCOPED_TRACE(height);
    const std::vector<Index> ids = {2, 0, 0, 5, 1, -1};  // two of them no group
    const Tensor x = ctx_.randn({static_cast<Index>(ids.size()) * height, k}), w = ctx_.randn({groups, k, n});
    const auto product =
        compile([](const Tensor& a, const Tensor& b, const Tensor& c) { return grouped_matmul(a, b, c); });
    const Tensor y = product(x, w, ctx_.from(ids, {static_cast<Index>(ids.size())}));
    ASSERT_EQ(y.shape(), (Shape{x.shape()[0], n}));
    const auto group = [&](Index row) {
      const Index g = ids[at(row / height)];
      return g < groups ? g : Index{-1};
    };
    expect_near(y.to_vector<float>(), host_rows(x.to_vector<float>(), w.to_vector<float>(), k, n, group));
    const SpecialisationReport report = product.report().front();
    EXPECT_EQ(report.kernels.size(), 1U) << product.explain();
    EXPECT_EQ(report.arena_bytes, 0) << "w was gathered";
  }
}

// The ids are data: other ids take other matrices through the same kernel.
TEST_P(GroupedMatmul, ReadsTheIdsAtEachCall) {
  const Tensor x = ctx_.randn({8, 5}), w = ctx_.randn({4, 5, 3});
  const auto product =
      compile([](const Tensor& a, const Tensor& b, const Tensor& c) { return grouped_matmul(a, b, c); });
  for (const std::vector<Index>& ids : {std::vector<Index>{0, 1}, std::vector<Index>{3, 2}})
    expect_near(product(x, w, ctx_.from(ids, {2})).to_vector<float>(),
                host_rows(x.to_vector<float>(), w.to_vector<float>(), 5, 3,
                          [&](Index row) { return ids[at(row / 4)]; }));
  EXPECT_EQ(product.report().size(), 1U);
}

TEST_P(GroupedMatmul, TakesBiasAndActivationIntoItsKernel) {
  const auto layer = compile([](const Tensor& x, const Tensor& w, const Tensor& ids) {
    return silu(grouped_matmul(x, w, ids)) * 2.f;
  });
  layer(ctx_.randn({64, 20}), ctx_.randn({3, 20, 30}), ctx_.from(std::vector<Index>{1, 2}, {2}));
  EXPECT_EQ(layer.report().front().kernels.size(), 1U) << layer.explain();
}

TEST_P(GroupedMatmul, TakesNoRows) {
  const Tensor y = grouped_matmul(ctx_.zeros({0, 5}), ctx_.zeros({2, 5, 3}), ctx_.zeros({0}, DType::i64));
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
}

// Empty groups, groups of one row, groups that end inside a block, and rows behind the last one.
TEST_P(GroupedMatmul, GroupsEndAnywhere) {
  const Index rows = 300, k = 24, n = 41;
  const Tensor x = ctx_.randn({rows, k}), w = ctx_.randn({5, k, n});
  const auto product =
      compile([](const Tensor& a, const Tensor& b, const Tensor& c) { return ragged_matmul(a, b, c); });
  for (const std::vector<Index>& ends :
       {std::vector<Index>{0, 1, 130, 130, 300}, std::vector<Index>{128, 256, 257, 258, 290},
        std::vector<Index>{0, 0, 0, 0, 0}, std::vector<Index>{300, 300, 300, 300, 300}}) {
    SCOPED_TRACE(ends[2]);
    const auto group = [&](Index row) {
      const auto end = std::upper_bound(ends.begin(), ends.end(), row);
      return end == ends.end() ? Index{-1} : static_cast<Index>(end - ends.begin());
    };
    expect_near(product(x, w, ctx_.from(ends, {5})).to_vector<float>(),
                host_rows(x.to_vector<float>(), w.to_vector<float>(), k, n, group));
  }
  EXPECT_EQ(product.report().size(), 1U);
  EXPECT_EQ(
      ragged_matmul(ctx_.ones({2, 5}), ctx_.zeros({0, 5, 3}), ctx_.zeros({0}, DType::i64)).to_vector<float>(),
      std::vector<float>(6, 0.f));
  EXPECT_EQ(ragged_matmul(ctx_.zeros({0, 5}), ctx_.zeros({2, 5, 3}), ctx_.zeros({2}, DType::i64)).shape(),
            (Shape{0, 3}));
}

TEST_P(GroupedMatmul, CountsSayWhichRowsAGroupUses) {
  const Index rows = 37, k = 24, n = 41;
  const std::vector<Index> counts = {0, 37, 20, 1};
  const auto groups = static_cast<Index>(counts.size());
  // What is past the count may be anything, also what a product would turn into NaN.
  std::vector<float> given = ctx_.randn({groups, rows, k}).to_vector<float>();
  for (Index p = 0; p < k; ++p) given[at(2 * rows * k + 30 * k + p)] = std::numeric_limits<float>::infinity();
  const Tensor x = ctx_.from(given, {groups, rows, k}), w = ctx_.randn({groups, k, n});
  const auto product =
      compile([](const Tensor& a, const Tensor& b, const Tensor& c) { return masked_matmul(a, b, c); });
  const Tensor y = product(x, w, ctx_.from(counts, {groups}));
  ASSERT_EQ(y.shape(), (Shape{groups, rows, n}));
  const auto group = [&](Index row) { return row % rows < counts[at(row / rows)] ? row / rows : Index{-1}; };
  expect_near(y.to_vector<float>(), host_rows(given, w.to_vector<float>(), k, n, group));
  EXPECT_EQ(product.report().front().kernels.size(), 1U) << product.explain();
}

// The blocks of a group are added up before the gradient is rounded: each block's part, 76,800, is more than
// f16 holds, and their sum is 1.
TEST_P(GroupedMatmul, TheGradientOfAGroupsMatrixIsRoundedOnce) {
  const Index rows = 512;
  std::vector<double> given(at(rows), 600);
  std::fill(given.begin() + rows / 2, given.end(), -600);
  given.back() = -599;
  const Tensor x = ctx_.from(given, {rows, 1}, DType::f16), w = ctx_.zeros({1, 1, 3}, DType::f16);
  const auto gradient = [&](const std::function<Tensor(const Tensor&)>& product) {
    const auto loss = [&](const Tensor& in) { return sum(cast(product(in), DType::f32)); };
    return grad(loss)(w).to_vector<float>();
  };
  const std::vector<float> one(3, 1.f);
  EXPECT_EQ(gradient([&](const Tensor& m) { return ragged_matmul(x, m, ctx_.full({1}, rows, DType::i64)); }),
            one);
  EXPECT_EQ(gradient([&](const Tensor& m) { return grouped_matmul(x, m, ctx_.zeros({4}, DType::i64)); }),
            one);
}

TEST_P(GroupedMatmul, SaysWhatDoesNotFit) {
  const auto says = [&](const std::function<void()>& mistake, const std::string& part) {
    expect_says(mistake, {part, "grouped_matmul_test.cpp:"});
  };
  const Tensor x = ctx_.zeros({12, 5}), w = ctx_.zeros({2, 5, 3}), ids = ctx_.zeros({3}, DType::i64);
  says([&] { grouped_matmul(ctx_.zeros({2, 6, 5}), w, ids); }, "wants x as (rows, K), got f32[2,6,5]");
  says([&] { grouped_matmul(x, ctx_.zeros({5, 3}), ids); }, "wants w as (groups, K, N)");
  says([&] { grouped_matmul(x, ctx_.zeros({2, 6, 3}), ids); },
       "x and w differ in K: x f32[12,5], w f32[2,6,3]");
  says([&] { grouped_matmul(x, w, ctx_.zeros({3})); }, "a list of integers beside them, got f32[3]");
  says([&] { grouped_matmul(x, w, ctx_.zeros({5}, DType::i64)); }, "12 rows are no multiple of 5 blocks");
  says([&] { grouped_matmul(x, w, ctx_.zeros({0}, DType::i64)); }, "12 rows are no multiple of 0 blocks");
  says([&] { ragged_matmul(x, w, ids); }, "wants an end for each group");
  says([&] { ragged_matmul(ctx_.zeros({2, 6, 5}), w, ids); }, "wants x as (rows, K), got f32[2,6,5]");
  const Tensor room = ctx_.zeros({2, 6, 5}), counts = ctx_.zeros({2}, DType::i32);
  says([&] { masked_matmul(x, w, counts); }, "wants x as (groups, rows, K), got f32[12,5]");
  says([&] { masked_matmul(room, w, ids); }, "the groups differ");
  says([&] { masked_matmul(room, ctx_.zeros({3, 5, 3}), counts); }, "the groups differ");
  says([&] { masked_matmul(room, w, ctx_.zeros({2, 1}, DType::i64)); }, "a list of integers");
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupedMatmul, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
