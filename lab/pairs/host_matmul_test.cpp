// The references' product: every edge of its tiles, every way its operands may lie, by each width of vectors.
#include "pairs/host_matmul.h"

#include <gtest/gtest.h>

#include <functional>

namespace tilewright::lab {
namespace {

// Whole numbers so small that every order of adding their products is exact.
double value(Index i, Index j) { return static_cast<double>((i * 7 + j * 13) % 11 - 5); }

struct Case {
  Index m, n, k;
  bool a_transposed, b_transposed;
};

HostArray stored(Index rows, Index columns, bool transposed, Index gap) {
  HostArray out(static_cast<std::size_t>(rows * columns + (transposed ? columns : rows) * gap), 1e30);
  const Index stride = (transposed ? rows : columns) + gap;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j)
      out[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)] = value(i, j);
  }
  return out;
}

// What is wrong with it, or with what it leaves between c's rows.
void expect_product(const Case& s, const std::function<void(const HostMatmul&)>& multiply) {
  constexpr Index kGap = 3;
  const HostArray a = stored(s.m, s.k, s.a_transposed, kGap), b = stored(s.k, s.n, s.b_transposed, kGap);
  HostArray c(static_cast<std::size_t>(s.m * (s.n + kGap)), -7);
  multiply({.a = a.data(),
            .b = b.data(),
            .c = c.data(),
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .lda = s.a_transposed ? 1 : s.k + kGap,
            .ldb = s.b_transposed ? 1 : s.n + kGap,
            .ldc = s.n + kGap,
            .a_step = s.a_transposed ? s.m + kGap : 1,
            .b_step = s.b_transposed ? s.k + kGap : 1});
  for (Index i = 0; i < s.m; ++i) {
    for (Index j = 0; j < s.n + kGap; ++j) {
      double sum = j < s.n ? 0 : -7;
      for (Index p = 0; j < s.n && p < s.k; ++p) sum += value(i, p) * value(p, j);
      ASSERT_EQ(c[static_cast<std::size_t>(i * (s.n + kGap) + j)], sum)
          << s.m << "x" << s.n << "x" << s.k << " at " << i << ", " << j;
    }
  }
}

const Case kCases[] = {{1, 1, 1, false, false},   {8, 24, 256, false, false}, {9, 25, 257, false, true},
                       {7, 23, 3, true, false},   {4, 12, 5, true, true},     {33, 391, 300, false, false},
                       {16, 800, 70, true, true}, {65, 1, 40, false, false},  {1, 65, 40, true, false},
                       {5, 6, 0, false, false}};

TEST(HostMatmul, IsTheProductByEveryWidthOfVectors) {
  for (const Case& s : kCases) {
    for (int lanes : {2, 4, 8}) expect_product(s, [&](const HostMatmul& w) { host_matmul(w, lanes); });
  }
}

TEST(HostMatmul, ThreadsShareItsRowsOrColumns) {
  ThreadPool pool(3);
  for (const Case& s : kCases) expect_product(s, [&](const HostMatmul& w) { host_matmul(w, pool); });
}

}  // namespace
}  // namespace tilewright::lab
