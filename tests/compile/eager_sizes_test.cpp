// Eager operations of many sizes: the values of the float64 oracle at each, whichever kernels were made for
// others, and how many kernels are compiled.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/ops.h"
#include "tensor/trace.h"

#include "support/draws.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Tensors = std::vector<Tensor>;

struct SizedOp {
  const char* name;
  std::function<std::vector<Shape>(Index)> shapes;  // of the arguments at a size
  std::function<Tensor(const Tensors&, Index)> run;
  bool empty = true;  // has a value at size 0
};

const std::vector<SizedOp>& sized_ops() {
  using S = std::vector<Shape>;
  static const std::vector<SizedOp> all = {
      {"add of vectors", [](Index n) { return S{{n}, {n}}; },
       [](const Tensors& x, Index) { return x[0] + x[1]; }},
      {"mul of matrices", [](Index n) { return S{{n, 48}, {n, 48}}; },
       [](const Tensors& x, Index) { return x[0] * x[1]; }},
      {"add to rows", [](Index n) { return S{{9, n}, {n}}; },
       [](const Tensors& x, Index) { return x[0] + x[1]; }},
      {"add to columns", [](Index n) { return S{{n, 9}, {n, 1}}; },
       [](const Tensors& x, Index) { return x[0] - x[1]; }},
      {"outer product", [](Index n) { return S{{n, 1}, {1, 7}}; },
       [](const Tensors& x, Index) { return x[0] * x[1]; }},
      {"outer product of both sizes", [](Index n) { return S{{n, 1}, {1, n}}; },
       [](const Tensors& x, Index) { return x[0] * x[1]; }},
      {"three axes", [](Index n) { return S{{3, n, 5}, {n, 1}}; },
       [](const Tensors& x, Index) { return x[0] + x[1]; }},
      {"exp", [](Index n) { return S{{n, 3}}; }, [](const Tensors& x, Index) { return exp(x[0]); }},
      {"a number", [](Index n) { return S{{n}}; },
       [](const Tensors& x, Index n) { return x[0] * (0.37 * static_cast<double>(n) + 0.1); }},
      {"elu", [](Index n) { return S{{n}}; },
       [](const Tensors& x, Index n) { return elu(x[0], 0.3 + 0.01 * static_cast<double>(n)); }},
      {"pad", [](Index n) { return S{{n, 3}}; },
       [](const Tensors& x, Index n) { return pad(x[0], 0, 1, 2, 0.25 * static_cast<double>(n)); }},
      {"layer_norm", [](Index n) { return S{{n, 6}}; },
       [](const Tensors& x, Index n) { return layer_norm(x[0], {}, {}, 1e-3 * static_cast<double>(n + 1)); }},
      {"layer_norm of longer rows", [](Index n) { return S{{3, n}}; },
       [](const Tensors& x, Index) { return layer_norm(x[0], {}, {}, 1e-3); }, false},
      {"sum of everything", [](Index n) { return S{{n, 7}}; },
       [](const Tensors& x, Index) { return sum(x[0]); }},
      {"sum of rows", [](Index n) { return S{{n, 7}}; },
       [](const Tensors& x, Index) { return sum(x[0], {1}); }},
      {"sum of longer rows", [](Index n) { return S{{7, n}}; },
       [](const Tensors& x, Index) { return sum(x[0], {1}); }},
      {"sum of columns", [](Index n) { return S{{7, n}}; },
       [](const Tensors& x, Index) { return sum(x[0], {0}); }},
      {"sum of longer columns", [](Index n) { return S{{n, 7}}; },
       [](const Tensors& x, Index) { return sum(x[0], {0}); }},
      {"sum of the middle", [](Index n) { return S{{3, n, 4}}; },
       [](const Tensors& x, Index) { return sum(x[0], {1}); }},
      {"max", [](Index n) { return S{{7, n}}; }, [](const Tensors& x, Index) { return max(x[0], {1}); },
       false},
      {"argmax", [](Index n) { return S{{7, n}}; },
       [](const Tensors& x, Index) { return cast(argmax(x[0], 1), DType::f32); }, false},
      {"cumsum", [](Index n) { return S{{5, n}}; }, [](const Tensors& x, Index) { return cumsum(x[0], 1); }},
      {"softmax", [](Index n) { return S{{n, 7}}; }, [](const Tensors& x, Index) { return softmax(x[0]); }},
      {"softmax of longer rows", [](Index n) { return S{{7, n}}; },
       [](const Tensors& x, Index) { return softmax(x[0]); }},
      {"concat of rows", [](Index n) { return S{{n, 5}, {1, 5}}; },
       [](const Tensors& x, Index) { return concat(x, 0); }},
      {"concat of columns", [](Index n) { return S{{5, n}, {5, n + 1}}; },
       [](const Tensors& x, Index) { return concat(x, 1); }},
      {"slice", [](Index n) { return S{{n, 6}}; },
       [](const Tensors& x, Index n) { return slice(x[0], 0, {n / 3}); }},
      {"flip", [](Index n) { return S{{n, 6}}; }, [](const Tensors& x, Index) { return flip(x[0], {0}); }},
      {"transpose", [](Index n) { return S{{n, 9}}; },
       [](const Tensors& x, Index) { return transpose(x[0], {1, 0}); }},
      {"reshape", [](Index n) { return S{{n, 6}}; },
       [](const Tensors& x, Index n) { return reshape(x[0], {2, 3 * n}); }},
      {"take", [](Index n) { return S{{n + 1, 6}, {n}}; },
       [](const Tensors& x, Index n) {
         return take(x[0], cast(abs(x[1]) * (0.125 * static_cast<double>(n)), DType::i32), 0);
       }},
      {"matmul of rows", [](Index n) { return S{{n, 8}, {8, 5}}; },
       [](const Tensors& x, Index) { return matmul(x[0], x[1]); }},
      {"matmul of depths", [](Index n) { return S{{7, n}, {n, 5}}; },
       [](const Tensors& x, Index) { return matmul(x[0], x[1]); }},
      {"matmul of columns", [](Index n) { return S{{4, 6}, {6, n}}; },
       [](const Tensors& x, Index) { return matmul(x[0], x[1]); }},
      {"matmul of squares", [](Index n) { return S{{n, n}, {n, n}}; },
       [](const Tensors& x, Index) { return matmul(x[0], x[1]); }},
      {"matmul of batches", [](Index n) { return S{{n, 3, 4}, {n, 4, 5}}; },
       [](const Tensors& x, Index) { return matmul(x[0], x[1]); }},
  };
  return all;
}

class EagerSizes : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};

  Tensors arguments(const SizedOp& op, Index n) {
    Tensors out;
    for (const Shape& shape : op.shapes(n)) {
      std::vector<float> values(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < values.size(); ++i)  // in [-2, 2), of some bits: sums are near exact
        values[i] =
            static_cast<float>((i * 37 + 11 * out.size() + static_cast<std::size_t>(n)) % 64) / 16 - 2;
      out.push_back(ctx_.from(values, shape));
    }
    return out;
  }

  // The graph of the operation, by its definition in float64.
  std::vector<double> oracle(const SizedOp& op, const Tensors& x, Index n) {
    auto trace = std::make_shared<detail::Trace>(detail::Trace::Of::compile, "oracle", Location::current());
    detail::Recorded recorded =
        detail::record_function([&](const Tensors& in) { return detail::leaves_of(op.run(in, n)); }, x,
                                detail::types_of(x), trace, ctx_.state());
    detail::finish(recorded);
    std::vector<ir::HostTensor> inputs;
    for (const Tensor& t : x)
      inputs.push_back({.type = {t.dtype(), t.shape()}, .f = t.to_vector<double>(), .i = {}});
    return ops::evaluate(recorded.trace->graph, inputs).at(0).f;
  }

  void expect_as_oracle(const SizedOp& op, Index n) {
    const Tensors x = arguments(op, n);
    const Tensor y = op.run(x, n);
    const std::vector<double> got = y.to_vector<double>(), want = oracle(op, x, n);
    ASSERT_EQ(got.size(), want.size()) << op.name << " at " << n;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 2e-5 * (1 + std::fabs(want[i])))
          << op.name << " at " << n << ", element " << i;
  }

  std::size_t builds() { return ctx_.state()->device(GetParam()).store.builds(); }
};

TEST_P(EagerSizes, HaveTheValuesOfTheOracle) {
  std::uint64_t number = 0;
  for (const SizedOp& op : sized_ops()) {
    std::vector<Index> sizes = {40, 41, 7, 1, 100, 2, 129, 64, 300, 0};
    for (Index n = 1; n <= 70; ++n)  // drawn: others of each op
      if (test::is_drawn(static_cast<std::uint64_t>(n) + number)) sizes.push_back(n);
    for (const Index n : sizes)
      if (n > 0 || op.empty) expect_as_oracle(op, n);
    ++number;
  }
}

// Sizes about the edges of tiles, of vectors and of blocks.
TEST_P(EagerSizes, CrossEveryEdge) {
  if (std::string(GetParam()) == "reference") return;  // interprets element by element
  for (const SizedOp& op : sized_ops()) {
    if (std::string(op.name).find("squares") != std::string::npos) continue;
    if (std::string(op.name).find("both sizes") != std::string::npos) continue;
    for (const Index n : {511, 128, 255, 256, 257, 513, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 8200})
      expect_as_oracle(op, n);
  }
}

TEST_P(EagerSizes, FewKernelsServeAll) {
  if (std::string(GetParam()) == "reference") return;  // so slow that most of these count as large
  for (const SizedOp& op : sized_ops()) {
    const std::string name = op.name;
    if (name == "cumsum") continue;             // a scan's row is one tile, as long as it is
    if (name == "matmul of squares") continue;  // large at these sizes: it has kernels of its own
    for (const Index n : {200, 201, 204, 151, 220, 250}) op.run(arguments(op, n), n);
    const std::size_t after_some = builds();
    for (const Index n : {149, 202, 133, 255, 222, 251, 180}) op.run(arguments(op, n), n);
    EXPECT_EQ(builds(), after_some) << op.name;
  }
}

// Operations to which sizes as arguments cost nothing share kernels between sizes.
TEST_P(EagerSizes, TheSecondCompilesNothing) {
  const auto of_vectors = [&](Index n) {
    const Tensor x = ctx_.full({n}, 0.5), rows = ctx_.full({n, 12}, 0.25);
    return std::vector{exp(x), x + x, rows * rows, sum(rows, {1}), softmax(rows), log_softmax(rows, 1)};
  };
  of_vectors(100);
  const std::size_t after_one = builds();
  EXPECT_GT(after_one, 0u);
  for (const Index n : {101, 33, 1000, 4100})
    EXPECT_NEAR(of_vectors(n)[4].to_vector<float>().back(), 1.0 / 12, 1e-6);
  EXPECT_EQ(builds(), after_one);
}

// Long calls that kernels of any size would make slower have kernels for each size: those that a context
// without other sizes would make.
TEST_P(EagerSizes, LargeProgramsThatLoopOrMultiplyHaveTheirOwn) {
  if (std::string(GetParam()) == "reference") return;  // nothing is large to it
  const Tensor w = ctx_.full({512, 512}, 0.25);
  const auto rows = [&](Index n) { return softmax(ctx_.full({3000, n}, 0.5)); };
  const auto product = [&](Index n) { return matmul(ctx_.full({n, 512}, 0.5), w); };
  for (const std::function<Tensor(Index)>& run : {std::function<Tensor(Index)>(rows), {product}}) {
    for (const Index n : {400, 401, 402, 403}) {
      const std::size_t before = builds();
      run(n);
      EXPECT_GT(builds(), before) << n;
    }
    const std::size_t before = builds();
    run(401);
    EXPECT_EQ(builds(), before);
  }
  for (const Index n : {5, 6}) product(n);
  const std::size_t small = builds();
  for (const Index n : {7, 8}) product(n);
  EXPECT_EQ(builds(), small) << "small ones share";
}

// Kernels of any size store as what the caches hold is stored.
TEST_P(EagerSizes, ResultsThatTheCachesDoNotHoldHaveTheirOwn) {
  if (std::string(GetParam()) == "reference") return;  // nothing is large to it
  ctx_.state()->device(GetParam()).target.cache_bytes = 1 << 16;
  const auto run = [&](Index n) { return exp(ctx_.full({n}, 0.5)); };
  run(100);
  for (const Index n : {100000, 100001}) {
    const std::size_t before = builds();
    run(n);
    EXPECT_GT(builds(), before) << n;
  }
  const std::size_t before = builds();
  for (const Index n : {101, 102, 100001}) run(n);
  EXPECT_EQ(builds(), before);
}

TEST_P(EagerSizes, ANumberIsAnArgument) {
  const Tensor x = ctx_.from(std::vector<float>{-1.5f, 0.25f, 2, -0.5f}, {4});
  const auto all = [&](double v) {
    elu(x, v), layer_norm(x, {}, {}, v), dropout(x, ctx_.full({}, 3, DType::i64), v);
  };
  all(0.11);
  all(0.12);
  const std::size_t after_two = builds();
  for (int i = 0; i < 10; ++i) all(0.13 + 0.07 * i);
  EXPECT_EQ(builds(), after_two);
}

TEST_P(EagerSizes, ARangeOfAnyLengthIsOneKernel) {
  for (const Index n : {5, 6}) ctx_.arange(n);
  const std::size_t after_two = builds();
  for (const Index n : {7, 100, 1000, 5000}) {
    const std::vector<std::int64_t> got = ctx_.arange(n).to_vector<std::int64_t>();
    for (Index i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], i) << n;
  }
  EXPECT_EQ(builds(), after_two);
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerSizes, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
