// Dot loops against the reference interpreter: sizes that break every tiling, operands in any order in
// memory, what is computed on the way in and out.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/text/dot_operands.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

namespace tilewright::cpu {
namespace {

using namespace tile;

using DotTest = testing::OnIsa;

enum class Order : unsigned char { rows, columns, apart };  // which axis of a matrix has stride 1

struct Problem {
  Index m = 1, n = 1, k = 1;
  Index bm = 1, bn = 1, bk = 1;
  DType dtype = DType::f32;
  Order a = Order::rows, b = Order::rows;
  bool transposed = false;  // b is loaded as [N, K] and transposed in the kernel
};

DType accumulator(DType dtype) {
  if (is_float(dtype)) return compute_dtype(dtype);
  return dtype == DType::i64 ? DType::i64 : DType::i32;
}

View matrix(Builder& k, const std::string& name, DType dtype, Index rows, Index columns, Order order) {
  std::vector<Dim> strides = {{columns, -1}, {1, -1}};
  if (order == Order::columns) strides = {{1, -1}, {rows, -1}};
  if (order == Order::apart) strides = {{2 * columns + 1, -1}, {2, -1}};
  return k.view(name, dtype, {rows, columns}, {.strides = strides});
}

using Change = std::function<Value(Builder&, Value)>;

// c = epilogue(Σ prologue(a) · prologue(b)).
Kernel dot_loop(const Problem& p, const Change& prologue = {}, const Change& epilogue = {}) {
  Builder k("dot_loop");
  const DType sum = accumulator(p.dtype);
  const View a = matrix(k, "a", p.dtype, p.m, p.k, p.a);
  const View b =
      p.transposed ? matrix(k, "b", p.dtype, p.n, p.k, p.b) : matrix(k, "b", p.dtype, p.k, p.n, p.b);
  const View c = k.view("c", sum, {p.m, p.n});
  const Value row = k.program_id(0) * p.bm, column = k.program_id(1) * p.bn;
  const auto block = [&](const View& view, const Value& i, const Value& j, Index rows, Index columns) {
    const Value t = k.load(view, {i, j}, {.shape = {rows, columns}, .fill = 0.0});
    return prologue ? prologue(k, t) : t;
  };
  const auto acc = k.loop(Index{0}, p.k, p.bk, {k.literal(sum, 0.0, {p.bm, p.bn})},
                          [&](Value i, const std::vector<Value>& carried) {
                            const Value left = block(a, row, i, p.bm, p.bk);
                            const Value right = p.transposed ? k.transpose(block(b, column, i, p.bn, p.bk))
                                                             : block(b, i, column, p.bk, p.bn);
                            return std::vector{k.dot(left, right, carried[0])};
                          });
  k.store(c, {row, column}, epilogue ? epilogue(k, acc[0]) : acc[0], {.bounded = true});
  return k.finish({{{p.m, p.bm}}, {{p.n, p.bn}}});
}

testing::ParityOptions ranges_for(DType dtype) {
  if (dtype == DType::u8) return {.ranges = {{0, {0, 255}}, {1, {0, 255}}}};
  if (is_integer(dtype)) return {.ranges = {{0, {-128, 127}}, {1, {-128, 127}}}};
  return {};
}

constexpr DType kDotTypes[] = {DType::f32,    DType::f64, DType::f16, DType::bf16, DType::f8e4m3,
                               DType::f8e5m2, DType::i8,  DType::u8,  DType::i32,  DType::i64};

TEST_P(DotTest, EveryTypeInSizesThatBreakTilings) {
  for (const DType d : kDotTypes)
    for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                  {1, 129, 33},
                                  {5, 40, 129},
                                  {127, 1, 129},
                                  {50, 127, 7},
                                  {13, 70, 300}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}x{}", name(d), m, n, k));
      const Problem p{m, n, k, std::min<Index>(m, 56), std::min<Index>(n, 96), std::min<Index>(k, 48), d};
      check(dot_loop(p), ranges_for(d));
    }
}

TEST_P(DotTest, OperandsInAnyOrder) {
  for (const DType d : {DType::f32, DType::i8})
    for (const Order a : {Order::rows, Order::columns, Order::apart})
      for (const Order b : {Order::rows, Order::columns, Order::apart})
        for (const auto& [m, n] : {std::pair<Index, Index>{3, 50}, {61, 1}, {61, 75}}) {
          SCOPED_TRACE(fmt::format("{} {}x{} orders {} {}", name(d), m, n, int(a), int(b)));
          check(dot_loop({m, n, 70, m, n, 40, d, a, b}), ranges_for(d));
        }
}

// Rows of the block that do not exist are zeros, and so are their sums: nothing of them is in a column's
// total.
TEST_P(DotTest, RowsThatOverhangAreZeros) {
  for (const auto& [d, block] :
       {std::pair<DType, Index>{DType::f32, 5}, {DType::bf16, 5}, {DType::i8, 5}, {DType::i8, 16}})
    for (const Order b : {Order::rows, Order::columns}) {
      SCOPED_TRACE(fmt::format("{} {} {}", name(d), block, static_cast<int>(b)));
      constexpr Index kRows = 3, kColumns = 40, kDepth = 65;
      Builder k("totals");
      const View left = matrix(k, "a", d, kRows, kDepth, Order::rows),
                 right = matrix(k, "b", d, kDepth, kColumns, b),
                 totals = k.view("totals", accumulator(d), {kColumns});
      const Value zero = k.literal(accumulator(d), 0.0, {block, kColumns});
      const Value product = k.dot(k.load(left, {0, 0}, {.shape = {block, kDepth}, .fill = 0.0}),
                                  k.load(right, {0, 0}, {.shape = {kDepth, kColumns}}), zero);
      k.store(totals, {0}, k.reduce(Monoid::sum, product, 0));
      check(k.finish({{{1, 1}}}), ranges_for(d));
    }
}

TEST_P(DotTest, TransposedInTheKernel) {
  for (const DType d : {DType::f32, DType::f16, DType::i8})
    for (const Order b : {Order::rows, Order::columns})
      for (const Index m : {2, 33})
        check(dot_loop({m, 45, 50, m, 32, 20, d, Order::rows, b, true}), ranges_for(d));
}

TEST_P(DotTest, BlocksOfManyPanelsAndChunks) {
  for (const DType d : {DType::f32, DType::bf16, DType::i8})
    check(dot_loop({230, 270, 150, 120, 200, 70, d}), ranges_for(d));
}

// Operands that something is computed on are multiplied from a buffer.
TEST_P(DotTest, ComputedOperands) {
  for (const Index m : {4, 40})
    for (const bool transposed : {false, true}) {
      const Problem p{m, 50, 60, m, 32, 24, DType::bf16, Order::rows, Order::rows, transposed};
      check(dot_loop(
          p, [](Builder& k, Value t) { return k.cast(exp(k.cast(t, DType::f32) * 0.5f), DType::bf16); }));
    }
}

TEST_P(DotTest, IntegersScaledOnTheWayIn) {
  Builder k("dequantised");
  const View a = k.view("a", DType::f32, {37, 80}), b = k.view("b", DType::i8, {80, 70}),
             scale = k.view("scale", DType::f32, {70}), c = k.view("c", DType::f32, {37, 70});
  const Value row = k.program_id(0) * 24, column = k.program_id(1) * 48;
  const Value s = k.load(scale, {column}, {.shape = {48}, .fill = 0.0});
  const auto acc =
      k.loop(Index{0}, 80, 32, {k.literal(DType::f32, 0.0, {24, 48})},
             [&](Value i, const std::vector<Value>& carried) {
               const Value left = k.load(a, {row, i}, {.shape = {24, 32}, .fill = 0.0});
               const Value right = k.load(b, {i, column}, {.shape = {32, 48}, .fill = 0.0});
               return std::vector{k.dot(left, k.cast(right, DType::f32) * k.expand(s, 0), carried[0])};
             });
  k.store(c, {row, column}, acc[0], {.bounded = true});
  check(k.finish({{{37, 24}}, {{70, 48}}}), {.ranges = {{0, {-2, 2}}, {1, {-128, 127}}, {2, {0.01, 0.1}}}});
}

TEST_P(DotTest, TwoOutputsBehindTheLoop) {
  Builder k("two_outputs");
  const View a = k.view("a", DType::bf16, {45, 90}), b = k.view("b", DType::bf16, {90, 52}),
             bias = k.view("bias", DType::f32, {52}), c = k.view("c", DType::bf16, {45, 52}),
             sums = k.view("sums", DType::f32, {45});
  const Value row = k.program_id(0) * 20;
  const auto acc =
      k.loop(Index{0}, 90, 32, {k.literal(DType::f32, 0.0, {20, 52})},
             [&](Value i, const std::vector<Value>& carried) {
               return std::vector{k.dot(k.load(a, {row, i}, {.shape = {20, 32}, .fill = 0.0}),
                                        k.load(b, {i, 0}, {.shape = {32, 52}, .fill = 0.0}), carried[0])};
             });
  const Value h = acc[0] + k.expand(k.load(bias, {0}, {.shape = {52}}), 0);
  const Value gelu = h * 0.5f * (tanh((h + h * h * h * 0.044715f) * 0.7978845608f) + 1.f);
  k.store(c, {row, 0}, k.cast(gelu, DType::bf16), {.bounded = true});
  k.store(sums, {row}, k.reduce(Monoid::sum, h, 1), {.bounded = true});
  check(k.finish({{{45, 20}}}));
}

TEST_P(DotTest, BatchesAndRuntimeSizes) {
  Builder k("batched");
  const Value m = k.scalar("m"), depth = k.scalar("depth");
  const View a = k.view("a", DType::f32, {3, m, depth}, {.strides = {{64 * 64, -1}, {64, -1}, {1, -1}}}),
             b = k.view("b", DType::f32, {3, depth, 40}, {.strides = {{64 * 40, -1}, {40, -1}, {1, -1}}}),
             c = k.view("c", DType::f32, {3, m, 40}, {.strides = {{64 * 40, -1}, {40, -1}, {1, -1}}});
  const Value row = k.program_id(0) * 16, batch = k.program_id(1);
  const auto acc = k.loop(
      Index{0}, depth, 24, {k.literal(DType::f32, 0.0, {16, 40})},
      [&](Value i, const std::vector<Value>& carried) {
        return std::vector{k.dot(k.load(a, {batch, row, i}, {.shape = {16, 24}, .fill = 0.0}),
                                 k.load(b, {batch, i, 0}, {.shape = {24, 40}, .fill = 0.0}), carried[0])};
      });
  k.store(c, {batch, row, 0}, acc[0], {.bounded = true});
  check(k.finish({{{m, 16}}, {{3, 1}}}), {.scalars = {35, 61}});
}

// A product that is added to zeros writes its tile itself, also what operands that end inside it leave zero:
// the second program finds the first one's sums in its buffer. `computed`: a is multiplied from a buffer.
TEST_P(DotTest, ProductsThatAreAddedToZeros) {
  for (const DType d : {DType::f32, DType::bf16, DType::i8})
    for (const bool computed : {false, true})
      for (const auto& [m, n] : {std::pair<Index, Index>{48, 64}, {48, 50}, {31, 64}, {31, 50}, {7, 3}}) {
        SCOPED_TRACE(fmt::format("{} {}x{} computed {}", name(d), m, n, computed));
        constexpr Index kRows = 24, kColumns = 64, kDepth = 37;
        const DType sum = accumulator(d);
        Builder k("product");
        const View a = k.view("a", d, {m, kDepth}), b = k.view("b", d, {kDepth, n}),
                   y = k.view("y", sum, {ceil_div(m, kRows), kColumns});
        Value left = k.load(a, {k.program_id(0) * kRows, k.literal_int(DType::i64, 0)},
                            {.shape = {kRows, kDepth}, .fill = 0.0});
        if (computed && is_float(d)) left = k.cast(k.cast(left, DType::f32) * 0.5f, d);
        const Value right = k.load(b, {0, 0}, {.shape = {kDepth, kColumns}, .fill = 0.0});
        const Value product = k.dot(left, right, k.literal(sum, 0.0, {kRows, kColumns}));
        k.store(y, {k.program_id(0), k.literal_int(DType::i64, 0)}, k.reduce(Monoid::max, product, 0));
        check(k.finish({{{m, kRows}}}), ranges_for(d));
      }
}

// A block that begins before its view cannot be packed in place, nor one whose fill is not zero.
TEST_P(DotTest, WindowsBeforeTheViewAndOtherFills) {
  for (const double fill : {0.0, 1.5})
    for (const Index shift : {0, 5}) {
      Builder k("window");
      const View a = k.view("a", DType::f32, {30, 40}), b = k.view("b", DType::f32, {40, 33}),
                 c = k.view("c", DType::f32, {30, 33});
      const Value start = k.program_id(0) * 16;
      const Value left =
          k.load(a, {start - shift, k.literal_int(DType::i64, 0)}, {.shape = {16, 48}, .fill = fill});
      const Value right = k.load(b, {0, 0}, {.shape = {48, 33}, .fill = 0.0});
      k.store(c, {start, 0}, k.dot(left, right, k.literal(DType::f32, 0.25, {16, 33})), {.bounded = true});
      const Kernel kernel = k.finish({{{30, 16}}});
      EXPECT_EQ(dot_operands_in_place(kernel).size(), fill == 0 && shift == 0 ? 2u : 1u);
      check(kernel);
    }
}

// What is written in between was loaded before.
TEST_P(DotTest, OperandsThatAreOverwritten) {
  Builder k("overwritten");
  const View a = k.view("a", DType::f32, {20, 20}), c = k.view("c", DType::f32, {20, 20});
  const Value t = k.load(a, {0, 0}, {.shape = {20, 20}});
  k.store(a, {0, 0}, t * 0.f);
  k.store(c, {0, 0}, k.dot(t, k.transpose(t), k.literal(DType::f32, 0, {20, 20})));
  const Kernel kernel = k.finish({{{1, 1}}});
  EXPECT_TRUE(dot_operands_in_place(kernel).empty());
  check(kernel);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DotTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tilewright::cpu
