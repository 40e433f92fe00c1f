#include "backends/reference/interpreter.h"

#include <gtest/gtest.h>
#include <tilewright/base/philox.h>
#include <tilewright/tile/builder.h>

#include <cmath>
#include <numeric>
#include <random>

#include "support/random_numbers.h"
#include "support/sample_kernels.h"

namespace tilewright::reference {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Monoid;
using tile::Value;
using tile::View;

// A typed buffer whose elements are read and written as float64.
class Buffer {
 public:
  Buffer(DType dtype, Index count)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(count) * size_bytes(dtype)) {}
  static Buffer random(DType dtype, Index count, unsigned seed, double scale = 1) {
    Buffer buffer(dtype, count);
    std::mt19937_64 engine(seed);
    test::RandomNormals normal(scale);
    for (Index i = 0; i < count; ++i) buffer.set(i, normal(engine));
    return buffer;
  }
  double operator[](Index i) const { return load_f64(bytes_.data() + i * step(), dtype_); }
  void set(Index i, double value) { store_f64(bytes_.data() + i * step(), dtype_, value); }
  ViewBinding binding() { return {.data = bytes_.data(), .extent_bytes = static_cast<Index>(bytes_.size())}; }

 private:
  Index step() const { return static_cast<Index>(size_bytes(dtype_)); }
  DType dtype_;
  std::vector<char> bytes_;  // aligned to 16 by the allocator
};

void run_checked(const Kernel& kernel, const std::vector<ViewBinding>& views,
                 const std::vector<std::int64_t>& scalars = {}) {
  const Status status = run(kernel, views, scalars, {.checked = true});
  ASSERT_TRUE(status.ok()) << status.error().message;
}

TEST(Interpreter, EluOverARaggedSize) {
  for (Index n : {0, 1, 63, 64, 65, 200}) {
    Buffer x = Buffer::random(DType::f32, n, 1), y(DType::f32, n);
    run_checked(tile::samples::elu(64), {x.binding(), y.binding()}, {n});
    for (Index i = 0; i < n; ++i)
      EXPECT_EQ(y[i], round_to(DType::f32, x[i] > 0 ? x[i] : std::exp(x[i]) - 1)) << i;
  }
}

TEST(Interpreter, SoftmaxInOnePassAndLoopedAgreeWithPlainLoops) {
  const Index rows = 5, columns = 100;
  Buffer x = Buffer::random(DType::bf16, rows * columns, 2, 3);
  Buffer whole(DType::bf16, rows * columns), looped(DType::bf16, rows * columns);
  run_checked(tile::samples::row_softmax(DType::bf16, rows, columns), {x.binding(), whole.binding()});
  run_checked(tile::samples::row_softmax_looped(DType::bf16, rows, columns, 32),
              {x.binding(), looped.binding()});
  for (Index r = 0; r < rows; ++r) {
    double top = -INFINITY, sum = 0;
    for (Index c = 0; c < columns; ++c) top = std::max(top, x[r * columns + c]);
    for (Index c = 0; c < columns; ++c) sum += std::exp(x[r * columns + c] - top);
    for (Index c = 0; c < columns; ++c) {
      const double want = std::exp(x[r * columns + c] - top) / sum;
      EXPECT_NEAR(whole[r * columns + c], want, want / 250);
      EXPECT_EQ(whole[r * columns + c], looped[r * columns + c]);
    }
  }
}

TEST(Interpreter, MatmulWithEpilogueOverRaggedBlocks) {
  const tile::samples::MatmulSizes s{.m = 20, .n = 17, .k = 33, .block_m = 16, .block_n = 8, .block_k = 16};
  Buffer a = Buffer::random(DType::f32, s.m * s.k, 3), b = Buffer::random(DType::f32, s.k * s.n, 4);
  Buffer bias = Buffer::random(DType::f32, s.n, 5), c(DType::f32, s.m * s.n);
  run_checked(tile::samples::matmul_gelu(DType::f32, s),
              {a.binding(), b.binding(), bias.binding(), c.binding()});
  for (Index i = 0; i < s.m; ++i)
    for (Index j = 0; j < s.n; ++j) {
      double h = bias[j];
      for (Index k = 0; k < s.k; ++k) h += a[i * s.k + k] * b[k * s.n + j];
      const double want = 0.5 * h * (1 + std::tanh(std::sqrt(2 / M_PI) * (h + 0.044715 * h * h * h)));
      EXPECT_NEAR(c[i * s.n + j], want, 1e-6 * (1 + std::abs(want)));
    }
}

TEST(Interpreter, AttentionAgreesWithPlainLoops) {
  for (bool causal : {false, true}) {
    const tile::samples::AttentionSizes s{
        .heads = 2, .tokens = 21, .width = 8, .block_m = 8, .block_n = 4, .causal = causal};
    const Index size = s.heads * s.tokens * s.width;
    Buffer q = Buffer::random(DType::f32, size, 6), k = Buffer::random(DType::f32, size, 7);
    Buffer v = Buffer::random(DType::f32, size, 8), o(DType::f32, size), lse(DType::f32, s.heads * s.tokens);
    run_checked(tile::samples::attention(DType::f32, s),
                {q.binding(), k.binding(), v.binding(), o.binding(), lse.binding()});
    for (Index row = 0; row < s.heads * s.tokens; ++row) {
      const Index head = row / s.tokens, end = causal ? row % s.tokens + 1 : s.tokens;
      std::vector<double> p(static_cast<std::size_t>(end));
      double sum = 0;
      for (Index n = 0; n < end; ++n) {
        double score = 0;
        for (Index d = 0; d < s.width; ++d)
          score += q[row * s.width + d] * k[(head * s.tokens + n) * s.width + d];
        sum += p[static_cast<std::size_t>(n)] = std::exp(score / std::sqrt(s.width));
      }
      EXPECT_NEAR(lse[row], std::log2(sum), 1e-5);
      for (Index d = 0; d < s.width; ++d) {
        double want = 0;
        for (Index n = 0; n < end; ++n)
          want += p[static_cast<std::size_t>(n)] / sum * v[(head * s.tokens + n) * s.width + d];
        EXPECT_NEAR(o[row * s.width + d], want, 1e-5);
      }
    }
  }
}

TEST(Interpreter, AtomicSumsAndPartialSumsAgree) {
  const Index rows = 50, columns = 13, block_rows = 16;
  Buffer x = Buffer::random(DType::f32, rows * columns, 9), sums(DType::f32, columns),
         partial(DType::f32, 4 * columns);
  run_checked(tile::samples::column_sums_atomic(rows, columns, block_rows, 8), {x.binding(), sums.binding()});
  run_checked(tile::samples::column_sums_partial(rows, columns, block_rows, 8),
              {x.binding(), partial.binding()});
  for (Index j = 0; j < columns; ++j) {
    double want = 0, parts = 0;
    for (Index i = 0; i < rows; ++i) want += x[i * columns + j];
    for (Index p = 0; p < 4; ++p) parts += partial[p * columns + j];
    EXPECT_NEAR(sums[j], want, 1e-5);
    EXPECT_NEAR(parts, want, 1e-5);
  }
}

bool is_index(Monoid monoid) { return monoid == Monoid::argmax || monoid == Monoid::argmin; }

// All prefixes of one combination; the index of the extreme for argmax and argmin.
std::vector<double> prefixes(Monoid monoid, const std::vector<double>& x) {
  std::vector<double> results;
  double total = x[0];
  std::size_t best = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const bool larger = monoid == Monoid::max || monoid == Monoid::argmax;
    if (j > 0 && monoid == Monoid::sum) total += x[j];
    if (j > 0 && monoid == Monoid::prod) total *= x[j];
    if (monoid > Monoid::prod && !std::isnan(total) &&
        (std::isnan(x[j]) || (larger ? x[j] > total : x[j] < total))) {
      total = x[j];
      best = j;
    }
    results.push_back(is_index(monoid) ? static_cast<double>(best) : total);
  }
  return results;
}

TEST(Interpreter, ReducesAndScansEitherAxisWithEachMonoid) {
  const Index rows = 3, columns = 5;
  Buffer x = Buffer::random(DType::f32, rows * columns, 10);
  x.set(7, NAN);
  for (Monoid monoid : {Monoid::sum, Monoid::prod, Monoid::max, Monoid::min, Monoid::argmax, Monoid::argmin})
    for (int axis : {0, 1}) {
      SCOPED_TRACE(std::string(name(monoid)) + " along " + std::to_string(axis));
      const Index results = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
      const DType dtype = is_index(monoid) ? DType::i64 : DType::f64;
      Builder k("k");
      const View vx = k.view("x", DType::f32, {rows, columns});
      const View vr = k.view("r", dtype, {results}), vs = k.view("s", DType::f64, {rows, columns});
      const Value t = k.load(vx, {0, 0}, {.shape = {rows, columns}});
      k.store(vr, {0}, k.cast(k.reduce(monoid, t, axis), dtype));
      if (!is_index(monoid)) k.store(vs, {0, 0}, k.cast(k.scan(monoid, t, axis), DType::f64));
      Buffer reduced(dtype, results), scanned(DType::f64, rows * columns);
      run_checked(k.finish({{{1, 1}}}), {x.binding(), reduced.binding(), scanned.binding()});
      for (Index o = 0; o < results; ++o) {
        const auto at = [&](Index j) { return axis == 0 ? j * columns + o : o * columns + j; };
        std::vector<double> line;
        line.reserve(length);
        for (Index j = 0; j < length; ++j) line.push_back(x[at(j)]);
        const std::vector<double> want = prefixes(monoid, line);
        const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
        EXPECT_TRUE(same(reduced[o], want.back())) << reduced[o] << " " << want.back();
        for (Index j = 0; !is_index(monoid) && j < length; ++j)
          EXPECT_TRUE(same(scanned[at(j)], want[static_cast<std::size_t>(j)])) << j;
      }
    }
}

TEST(Interpreter, IntegersWrapAfterEachOp) {
  Builder k("k");
  const View y = k.view("y", DType::i64, {12});
  Index slot = 0;
  const auto put = [&](Value v) { k.store(y, {slot++}, k.cast(v, DType::i64)); };
  const Value i8 = k.literal_int(DType::i8, 100), u8 = k.literal_int(DType::u8, 200),
              i64 = k.literal_int(DType::i64, INT64_MIN);
  put(i8 + i8);
  put(u8 + u8);
  put(-u8);
  put(i8 / 0);
  put(i8 % 0);
  put(i64 / -1);
  put(k.apply(tile::Prim::shl, {i8, 9}));   // the count modulo 8
  put(k.apply(tile::Prim::shr, {-i8, 3}));  // arithmetic
  put(~k.literal_int(DType::boolean, 1));
  put(abs(i64));
  put(k.cast(k.literal(DType::f32, 1e20), DType::i32));  // saturates
  put(k.cast(k.literal(DType::f32, -3.9), DType::u8));
  Buffer out(DType::i64, 12);
  run_checked(k.finish({{{1, 1}}}), {out.binding()});
  const double want[] = {-56, 144, 56, 0, 100, -0x1p63, -56, -13, 0, -0x1p63, 2147483647, 0};
  for (Index i = 0; i < 12; ++i) EXPECT_EQ(out[i], want[i]) << i;
}

TEST(Interpreter, NothingRoundsBetweenLoadAndStoreButCast) {
  Builder k("k");
  const View y = k.view("y", DType::f64, {2});
  const Value third = k.literal(DType::f32, 1) / k.literal(DType::f32, 3);
  k.store(y, {0}, k.cast(third, DType::f64));
  k.store(y, {1}, k.cast(k.cast(third, DType::bf16), DType::f64));
  Buffer out(DType::f64, 2);
  run_checked(k.finish({{{1, 1}}}), {out.binding()});
  EXPECT_EQ(out[0], 1.0 / 3);
  EXPECT_EQ(out[1], round_to(DType::bf16, 1.0 / 3));
}

TEST(Interpreter, CarriedValuesThatSwapPlacesAreReadBeforeTheyAreWritten) {
  Builder k("k");
  const View y = k.view("y", DType::i64, {2});
  const Value zero = k.literal_int(DType::i64, 0), one = k.literal_int(DType::i64, 1);
  const auto fibonacci = k.loop(0, 10, 1, {zero, one}, [](Value, const std::vector<Value>& c) {
    return std::vector<Value>{c[1], c[0] + c[1]};
  });
  const auto swapped = k.loop(0, 3, 1, {zero, one}, [](Value, const std::vector<Value>& c) {
    return std::vector<Value>{c[1], c[0]};
  });
  k.store(y, {0}, fibonacci[0]);
  k.store(y, {1}, swapped[0]);
  Buffer out(DType::i64, 2);
  run_checked(k.finish({{{1, 1}}}), {out.binding()});
  EXPECT_EQ(out[0], 55);
  EXPECT_EQ(out[1], 1);
}

TEST(Interpreter, BranchesRunOneSide) {
  Builder k("k");
  const View y = k.view("y", DType::i64, {6});
  const Value p = k.program_id(0);
  const auto chosen = k.branch(
      p % 2 == 0, [&] { return std::vector<Value>{p * 10}; },
      [&] {
        k.store(y, {p - 1}, p);
        return std::vector<Value>{-p};
      });
  k.store(y, {p + 2}, chosen[0]);
  Buffer out(DType::i64, 6);
  // Only programs 0 to 2: stores at 2, 3 and 4; program 1 also at 0.
  ASSERT_TRUE(run(k.finish({{{3, 1}}}), {out.binding()}, {}).ok());
  const double want[] = {1, 0, 0, -1, 20, 0};
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(out[i], want[i]);
}

TEST(Interpreter, BlocksOfStridedFlippedBroadcastAndPermutedViews) {
  Buffer x(DType::f32, 12), y(DType::f32, 12);
  for (Index i = 0; i < 12; ++i) x.set(i, static_cast<double>(i));
  Builder k("k");
  // The 3 × 4 matrix with its columns reversed, read transposed.
  const View vx = k.view("x", DType::f32, {3, 4}, {.strides = {{4, -1}, {-1, -1}}, .align_bytes = 4});
  const View vy = k.view("y", DType::f32, {4, 3});
  k.store(vy, {0, 0}, k.load(vx, {0, 0}, {.shape = {4, 3}, .dims = {1, 0}}));
  ViewBinding flipped = x.binding();
  flipped.data = static_cast<char*>(flipped.data) + 12;
  flipped.before_bytes = 12;
  flipped.extent_bytes -= 12;
  run_checked(k.finish({{{1, 1}}}), {flipped, y.binding()});
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(y[i * 3 + j], x[j * 4 + 3 - i]);
}

TEST(Interpreter, BoundedBlocksFillAndDropOnEverySide) {
  Buffer x(DType::f32, 6), y(DType::f32, 10);
  for (Index i = 0; i < 6; ++i) x.set(i, static_cast<double>(i + 1));
  Builder k("k");
  const View vx = k.view("x", DType::f32, {6}), vy = k.view("y", DType::f32, {10});
  const Value shift = k.scalar("shift");
  const Value t = k.load(vx, {shift}, {.shape = {10}, .fill = -1.0});
  k.store(vy, {shift}, t, {.bounded = true});
  const Kernel kernel = k.finish({{{1, 1}}});
  for (Index by : {-20, -3, 0, 4, 9, 50}) {
    for (Index i = 0; i < 10; ++i) y.set(i, 99);
    run_checked(kernel, {x.binding(), y.binding()}, {by});
    for (Index i = 0; i < 10; ++i) {
      const bool stored = i - by >= 0 && i - by < 10;  // y[i] = x[i], where the block lies
      EXPECT_EQ(y[i], !stored ? 99 : i < 6 ? x[i] : -1) << by << " " << i;
    }
  }
}

TEST(Interpreter, GatherScatterAndMasks) {
  Buffer x = Buffer::random(DType::f32, 8, 11), y(DType::f32, 8);
  Builder k("k");
  const View vx = k.view("x", DType::f32, {8}), vy = k.view("y", DType::f32, {8});
  const Value i = k.arange(8);
  const Value g = k.gather(vx, {7 - i + 2}, {.mask = i >= 2, .fill = 5.0});
  k.scatter(vy, {(i * 3) % 8}, g, i < 6);
  run_checked(k.finish({{{1, 1}}}), {x.binding(), y.binding()});
  for (Index n = 0; n < 6; ++n) EXPECT_EQ(y[n * 3 % 8], n < 2 ? 5 : x[9 - n]);
  EXPECT_EQ(y[6 * 3 % 8], 0);
}

TEST(Interpreter, RandomWordsArePhiloxOfTheCounter) {
  Builder k("k");
  const View y = k.view("y", DType::i64, {10});
  const Value seed = k.scalar("seed");
  k.store(y, {0}, k.random(seed, k.arange(10) + 5));
  Buffer out(DType::i64, 10);
  run_checked(k.finish({{{1, 1}}}), {out.binding()}, {42});
  for (Index i = 0; i < 10; ++i) {
    const auto counter = static_cast<std::uint64_t>(i + 5);
    EXPECT_EQ(out[i], philox4x32(42, counter / 4)[counter % 4]);
  }
}

TEST(Interpreter, ScalarsOfEachTypeArrive) {
  Builder k("k");
  const Value n = k.scalar("n"), a = k.scalar("a", DType::f32), b = k.scalar("b", DType::f64);
  const View y = k.view("y", DType::f64, {1});
  k.store(y, {0}, k.cast(n, DType::f64) + k.cast(a, DType::f64) + b);
  Buffer out(DType::f64, 1);
  run_checked(k.finish({{{1, 1}}}), {out.binding()},
              {-3, tile::scalar_bits(DType::f32, 0.5), tile::scalar_bits(DType::f64, 1e-3)});
  EXPECT_EQ(out[0], -3 + 0.5 + 1e-3);
}

TEST(Interpreter, ProgramsOnAPoolGiveTheSameBytes) {
  const Index rows = 300, columns = 40;
  ThreadPool pool(2);
  Buffer x = Buffer::random(DType::bf16, rows * columns, 12), alone(DType::bf16, rows * columns),
         pooled(DType::bf16, rows * columns);
  const Kernel kernel = tile::samples::row_softmax(DType::bf16, rows, columns);
  ASSERT_TRUE(run(kernel, {x.binding(), alone.binding()}, {}).ok());
  ASSERT_TRUE(run(kernel, {x.binding(), pooled.binding()}, {}, {.pool = &pool}).ok());
  for (Index i = 0; i < rows * columns; ++i) ASSERT_EQ(alone[i], pooled[i]);
}

TEST(Interpreter, WrongArgumentsAreRefused) {
  Buffer x(DType::f32, 8);
  const Kernel kernel = tile::samples::elu();
  const auto message = [&](const std::vector<ViewBinding>& views, const std::vector<std::int64_t>& scalars) {
    const Status status = run(kernel, views, scalars);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_NE(message({x.binding()}, {8}).find("1 views bound, the kernel has 2"), std::string::npos);
  EXPECT_NE(message({x.binding(), x.binding()}, {}).find("0 scalars given"), std::string::npos);
  EXPECT_NE(message({x.binding(), x.binding()}, {-8}).find("negative extent"), std::string::npos);
  ViewBinding odd = x.binding();
  odd.data = static_cast<char*>(odd.data) + 4;
  EXPECT_NE(message({x.binding(), odd}, {1}).find("%y is not aligned to 16 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::reference
