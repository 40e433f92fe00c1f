// Kernels of every shape on every instruction set against the reference interpreter.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include <limits>

#include "support/sample_kernels.h"

namespace tilewright::cpu {
namespace {

using namespace tile;

constexpr Index kSizes[] = {1, 7, 17, 100, 1000};

using ParityTest = testing::OnIsa;

// y[shape] = f(x[shape]) in one program; x and y of their own types.
Kernel unary_kernel(DType from, DType to, const std::vector<Index>& shape,
                    const std::function<Value(Builder&, Value)>& f) {
  Builder k("unary");
  std::vector<Builder::SizeArg> extents(shape.begin(), shape.end());
  const View x = k.view("x", from, extents);
  std::vector<Operand> starts(shape.size(), Operand(0));
  Value result = f(k, k.load(x, starts, {.shape = shape}));
  std::vector<Builder::SizeArg> out;
  for (Index e : result.type().shape) out.push_back(e);
  const View y = k.view("y", to, out);
  k.store(y, std::vector<Operand>(out.size(), Operand(0)), result);
  return k.finish({{{1, 1}}});
}

// Many small computations in one kernel: each has views of its own, and most of what compiling a small kernel
// takes is the same for all of them.
class ManyResults {
 public:
  // y[shape of f] = f(x[shape]), the numbers of x in `range`.
  void add(DType from, DType to, const std::vector<Index>& shape,
           std::optional<std::pair<double, double>> range, const std::function<Value(Value)>& f) {
    const View x = k.view(fmt::format("x{}", views_), from, {shape.begin(), shape.end()});
    if (range) options.ranges[views_] = *range;
    const Value result = f(k.load(x, std::vector<Operand>(shape.size(), Operand(0)), {.shape = shape}));
    const std::vector<Index>& out = result.type().shape;
    const View y = k.view(fmt::format("y{}", views_), to, {out.begin(), out.end()});
    k.store(y, std::vector<Operand>(out.size(), Operand(0)), result);
    views_ += 2;
  }
  Kernel finish() { return k.finish({{{1, 1}}}); }

  Builder k{"many"};
  testing::ParityOptions options;

 private:
  int views_ = 0;
};

TEST_P(ParityTest, EluOverARuntimeSize) {
  for (const Index n : kSizes)
    for (const bool streaming : {false, true})
      check(samples::elu(256), {.scalars = {n}},
            {.kind = tile::CpuLoops{.unroll = 4, .streaming_stores = streaming}});
}

TEST_P(ParityTest, SoftmaxOfWholeRows) {
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Index columns : {1, 17, 100, 1000}) check(samples::row_softmax(d, 5, columns));
}

// What is fetched ahead is never used wrongly, whatever lies behind the last row.
TEST_P(ParityTest, RowsFetchedAhead) {
  for (const DType d : {DType::f32, DType::bf16})
    for (const Index columns : {1, 100, 1000})
      check(samples::row_softmax(d, 5, columns), {},
            {.kind = tile::CpuLoops{.unroll = 4, .fetch_ahead = true}});
}

TEST_P(ParityTest, SoftmaxOfRowsInBlocks) {
  for (const Index columns : kSizes) check(samples::row_softmax_looped(DType::f32, 3, columns, 64));
  check(samples::row_softmax_looped(DType::bf16, 3, 100, 48));
}

TEST_P(ParityTest, MatmulWithEpilogue) {
  check(samples::matmul_gelu(DType::f32, {33, 50, 70, 16, 32, 16}));
  check(samples::matmul_gelu(DType::f32, {64, 64, 64, 64, 64, 64}));
  check(samples::matmul_gelu(DType::bf16, {20, 40, 33, 20, 24, 16}));
  check(samples::matmul_gelu(DType::f16, {20, 40, 33, 7, 5, 16}));
  // Columns of one element: rows of the result are neighbours in memory.
  for (const DType d : {DType::f32, DType::bf16}) check(samples::matmul_gelu(d, {33, 3, 70, 20, 1, 35}));
}

TEST_P(ParityTest, Attention) {
  check(samples::attention(DType::f32, {2, 50, 24, 16, 16, true}));
  check(samples::attention(DType::f32, {2, 33, 16, 16, 32, false}));
  check(samples::attention(DType::bf16, {1, 40, 16, 16, 16, true}));
}

TEST_P(ParityTest, ColumnSums) {
  check(samples::column_sums_atomic(70, 100, 16, 48));
  check(samples::column_sums_partial(70, 100, 16, 48));
}

TEST_P(ParityTest, LayerNorm) {
  for (const Index columns : kSizes) {
    Builder k("layernorm");
    const View x = k.view("x", DType::f32, {4, columns}), y = k.view("y", DType::f32, {4, columns});
    const View gamma = k.view("gamma", DType::f32, {columns}), beta = k.view("beta", DType::f32, {columns});
    const Value r = k.program_id(0);
    const Value t = k.load(x, {r, 0}, {.shape = {columns}});
    const float scale = 1.f / static_cast<float>(columns);
    const Value centred = t - k.reduce(Monoid::sum, t, 0) * scale;
    const Value inverse = rsqrt(k.reduce(Monoid::sum, centred * centred, 0) * scale + 1e-5f);
    k.store(y, {r, 0},
            centred * inverse * k.load(gamma, {0}, {.shape = {columns}}) +
                k.load(beta, {0}, {.shape = {columns}}));
    check(k.finish({{{4, 1}}}));
  }
}

TEST_P(ParityTest, EveryPrimitiveOnEveryType) {
  for (const DType d : kAllDTypes) {
    SCOPED_TRACE(name(d));
    Builder k("prims");
    testing::ParityOptions options;
    int views = 0;
    for (const PrimInfo& row : kPrims) {
      const bool takes =
          row.operands == PrimClass::any ||
          (row.operands == PrimClass::floating && (d == DType::f32 || d == DType::f64)) ||
          (row.operands == PrimClass::arithmetic && (d == DType::f32 || d == DType::f64 || is_integer(d))) ||
          (row.operands == PrimClass::integral &&
           (is_integer(d) || (is_bool(d) && row.prim != Prim::shl && row.prim != Prim::shr)));
      if (!takes) continue;
      const DType result = row.to_bool ? DType::boolean : d;
      const auto view = [&](std::string_view of, DType dtype, Index n) {
        ++views;
        return k.view(fmt::format("{}_{}", row.name, of), dtype, {n});
      };
      const int first = views;
      const View a = view("a", d, 37), b = view("b", d, 37), c = view("c", d, 37);
      const View m = view("m", DType::boolean, 37);
      const View y = view("y", result, 37), s = view("s", result, 1);
      const auto apply = [&](bool tile) {
        const LoadOptions load{.shape = tile ? std::vector<Index>{37} : std::vector<Index>{}};
        std::vector<Operand> operands{k.load(a, {0}, load), k.load(b, {0}, load), k.load(c, {0}, load)};
        if (row.prim == Prim::select) operands[0] = k.load(m, {0}, load);
        operands.resize(static_cast<std::size_t>(row.arity), operands[0]);
        return k.apply(row.prim, operands);
      };
      k.store(y, {0}, apply(true));
      k.store(s, {0}, apply(false));
      const bool positive = row.prim == Prim::log || row.prim == Prim::log2 || row.prim == Prim::sqrt ||
                            row.prim == Prim::rsqrt || row.prim == Prim::pow;
      const auto range = [&](int operand, double low, double high) {
        options.ranges[first + operand] = {low, high};
      };
      if (is_float(d)) range(0, positive ? 0.1 : -3, 3), range(1, -2, 3), range(2, -3, 3);
      if (is_integer(d))
        range(0, d == DType::u8 ? 0 : -100, 99), range(1, d == DType::u8 ? 0 : -4, 4), range(2, 0, 8);
    }
    check(k.finish({{{1, 1}}}), options);
  }
}

TEST_P(ParityTest, EveryCast) {
  for (const DType from : kAllDTypes) {
    SCOPED_TRACE(name(from));
    const bool whole = is_integer(from);
    std::optional<std::pair<double, double>> range{{from == DType::u8 ? 0
                                                    : whole           ? -120
                                                                      : -300,
                                                    whole ? 119 : 300}};
    if (is_bool(from)) range.reset();
    ManyResults casts;
    for (const DType to : kAllDTypes) {
      if (from == to) continue;
      casts.add(from, to, {100}, range, [&](Value v) { return casts.k.cast(v, to); });
      casts.add(from, to, {}, range, [&](Value v) { return casts.k.cast(v, to); });
    }
    check(casts.finish(), casts.options);
  }
}

TEST_P(ParityTest, ReductionsAlongEachAxis) {
  for (const DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8, DType::boolean})
    for (int m = 0; m <= static_cast<int>(Monoid::argmin); ++m) {
      const auto monoid = static_cast<Monoid>(m);
      const bool logical = monoid == Monoid::logical_and || monoid == Monoid::logical_or;
      if (logical != is_bool(d)) continue;
      SCOPED_TRACE(std::string(name(monoid)) + " of " + std::string(name(d)));
      const DType result = monoid == Monoid::argmax || monoid == Monoid::argmin ? DType::i64 : d;
      std::optional<std::pair<double, double>> range;
      if (is_integer(d)) range = {0, 6};
      if (monoid == Monoid::prod) range = {is_integer(d) ? 1 : 0.9, is_integer(d) ? 2 : 1.1};
      ManyResults reductions;
      for (const auto& shape : {std::vector<Index>{1},
                                {13},
                                {100},
                                {3, 17},
                                {17, 3},
                                {5, 64},
                                {1, 40},
                                {40, 1},
                                {1, 1},
                                {20, 100}})
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
          reductions.add(d, result, shape, range,
                         [&](Value v) { return reductions.k.reduce(monoid, v, axis); });
      check(reductions.finish(), reductions.options);
    }
}

TEST_P(ParityTest, ReductionsOfNaN) {
  for (const Monoid m : {Monoid::max, Monoid::min, Monoid::argmax, Monoid::argmin, Monoid::sum})
    for (const Index n : {5, 40, 200}) {
      const DType result = m == Monoid::argmax || m == Monoid::argmin ? DType::i64 : DType::f32;
      // Logarithms of negative numbers: NaN in some places, never in the first.
      check(
          unary_kernel(DType::f32, result, {n}, [&](Builder& k, Value v) { return k.reduce(m, log(v), 0); }));
    }
}

TEST_P(ParityTest, ScansAlongEachAxis) {
  for (const DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8})
    for (const Monoid monoid : {Monoid::sum, Monoid::prod, Monoid::max, Monoid::min}) {
      SCOPED_TRACE(std::string(name(monoid)) + " of " + std::string(name(d)));
      std::optional<std::pair<double, double>> range;
      if (monoid == Monoid::prod) range = {is_integer(d) ? 1 : 0.9, is_integer(d) ? 2 : 1.1};
      ManyResults scans;
      for (const auto& shape :
           {std::vector<Index>{1}, {13}, {100}, {3, 17}, {17, 3}, {5, 64}, {1, 40}, {40, 1}})
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
          scans.add(d, d, shape, range, [&](Value v) { return scans.k.scan(monoid, v, axis); });
      check(scans.finish(), scans.options);
    }
}

TEST_P(ParityTest, ReductionAlongBothAxesAndStores) {
  Builder k("both");
  const View x = k.view("x", DType::f32, {20, 50}), y = k.view("y", DType::f32, {20, 50});
  const View rows = k.view("rows", DType::f32, {20}), columns = k.view("columns", DType::f32, {50});
  const Value t = k.load(x, {0, 0}, {.shape = {20, 50}}) * 2.f;
  k.store(rows, {0}, k.reduce(Monoid::sum, t, 1));
  k.store(columns, {0}, k.reduce(Monoid::max, t, 0));
  k.store(y, {0, 0}, exp(t));
  check(k.finish({{{1, 1}}}));
}

TEST_P(ParityTest, StridedViews) {
  for (const auto& [sx, sy] :
       {std::pair<std::vector<Dim>, std::vector<Dim>>{{{1, -1}, {30, -1}}, {{50, -1}, {1, -1}}},
        {{{50, -1}, {-1, -1}}, {{50, -1}, {1, -1}}},
        {{{0, -1}, {1, -1}}, {{1, -1}, {30, -1}}},
        {{{50, -1}, {0, -1}}, {{100, -1}, {2, -1}}},
        {{{60, -1}, {2, -1}}, {{50, -1}, {1, -1}}},
        {{{50, -1}, {1, -1}}, {{40, -1}, {2, -1}}},
        {{{-60, -1}, {3, -1}}, {{50, -1}, {-1, -1}}},
        {{{0, -1}, {0, -1}}, {{50, -1}, {1, -1}}}})
    for (const DType d : {DType::f32, DType::bf16, DType::boolean, DType::i64})
      for (const bool bounded : {false, true}) {
        Builder k("strided");
        const View x = k.view("x", d, {30, 20}, {.strides = sx, .align_bytes = 1}),
                   y = k.view("y", d, {30, 20}, {.strides = sy, .align_bytes = 1});
        const std::vector<Index> block = bounded ? std::vector<Index>{16, 16} : std::vector<Index>{15, 20};
        LoadOptions load{.shape = block};
        if (bounded) load.fill = 1;
        const Value i = k.program_id(0) * block[0], j = k.program_id(1) * block[1];
        k.store(y, {i, j}, k.load(x, {i, j}, load), {.bounded = bounded});
        check(k.finish({{{30, block[0]}}, {{20, block[1]}}}));
      }
}

TEST_P(ParityTest, TileAxesMayWalkTheViewInAnyOrder) {
  Builder k("dims");
  const View x = k.view("x", DType::f32, {6, 20, 40}), y = k.view("y", DType::f32, {40, 6, 20});
  const Value p = k.program_id(0);
  const Value t = k.load(x, {0, p * 5, 0}, {.shape = {40, 6}, .dims = {2, 0}});
  k.store(y, {0, 0, p * 5}, t, {.dims = {0, 1}});
  check(k.finish({{{20, 5}}}));
}

TEST_P(ParityTest, BlocksThatBeginOutsideReadTheFill) {
  for (const Index n : {5, 40, 130}) {
    Builder k("window");
    const View x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
    const Value start = k.program_id(0) * 32;
    const Value left = k.load(x, {start - 1}, {.shape = {32}, .fill = 3.0});
    const Value right = k.load(x, {start + 1}, {.shape = {32}, .fill = -3.0});
    k.store(y, {start}, left + 2.f * right, {.bounded = true});
    check(k.finish({{{n, 32}}}));
  }
  Builder k("window2");
  const View x = k.view("x", DType::i32, {10, 40}), y = k.view("y", DType::i32, {10, 40}),
             s = k.view("s", DType::i32, {10});
  const Value t = k.load(x, {k.literal_int(DType::i64, -2), k.literal_int(DType::i64, -5)},
                         {.shape = {10, 40}, .fill = 9});
  k.store(y, {0, 0}, t);
  k.store(s, {0}, k.reduce(Monoid::sum, t, 1));
  check(k.finish({{{1, 1}}}));
}

TEST_P(ParityTest, RaggedRowsAndColumns) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{5, 9}, {33, 70}, {64, 64}}) {
    Builder k("ragged");
    const View x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows, columns});
    const View b = k.view("b", DType::f32, {columns}), s = k.view("s", DType::f32, {rows}),
               c = k.view("c", DType::f32, {3, columns});
    const Value i = k.program_id(0) * 32, j = k.program_id(1) * 64;
    const Value t = k.load(x, {i, j}, {.shape = {32, 64}, .fill = 0.5}) +
                    k.expand(k.load(b, {j}, {.shape = {64}, .fill = 0.0}), 0);
    k.store(y, {i, j}, exp(t), {.bounded = true});
    k.store(c, {k.program_id(0), j}, k.reduce(Monoid::sum, t, 0), {.bounded = true});
    k.atomic_add(s, {i + k.arange(32)}, k.reduce(Monoid::sum, t, 1), i + k.arange(32) < rows);
    check(k.finish({{{rows, 32}}, {{columns, 64}}}));
  }
}

TEST_P(ParityTest, GatherAndScatter) {
  Builder k("gather");
  const View table = k.view("table", DType::f32, {50, 40}), ids = k.view("ids", DType::i64, {100});
  const View y = k.view("y", DType::f32, {100, 40}), z = k.view("z", DType::f32, {100}),
             w = k.view("w", DType::f32, {200});
  const Value start = k.program_id(0) * 16;
  const Value at = start + k.arange(16);
  const Value row = k.load(ids, {start}, {.shape = {16}, .fill = 0});
  const Value exists = at < 100;
  const Value t = k.gather(table, {k.expand(row, 1), k.expand(k.arange(40), 0)},
                           {.mask = k.expand(exists, 1), .fill = 7});
  k.store(y, {start, 0}, t, {.bounded = true});
  const Value e = k.gather(table, {row, row % 40}, {.mask = exists & (row > 20)});
  k.scatter(z, {at}, e, exists);
  k.scatter(w, {199 - at}, exp(e), exists);
  testing::ParityOptions options;
  options.ranges = {{0, {-2, 2}}, {1, {0, 49}}};
  check(k.finish({{{100, 16}}}), options);
}

TEST_P(ParityTest, EmbeddingReadsRowsWhole) {
  Builder k("embedding");
  const View table = k.view("table", DType::bf16, {30, 70}), ids = k.view("ids", DType::i32, {40}),
             y = k.view("y", DType::bf16, {40, 70});
  const Value p = k.program_id(0);
  const Value row = k.cast(k.load(ids, {p}), DType::i64);
  k.store(y, {p, 0}, k.gather(table, {row, k.arange(70)}));
  testing::ParityOptions options;
  options.ranges = {{0, {-2, 2}}, {1, {0, 29}}};
  check(k.finish({{{40, 1}}}), options);
}

// A row that data picks, and that may be none, is read before a loop that scans what it is spread over.
TEST_P(ParityTest, RowsThatAnIndexPicksAreSpread) {
  Builder k("picked");
  const View table = k.view("table", DType::f32, {3, 31}), which = k.view("which", DType::i32, {5}),
             y = k.view("y", DType::f32, {5, 31, 4});
  const Value p = k.program_id(0), row = k.cast(k.load(which, {p}), DType::i64);
  const Value t = k.load(table, {row, Index{0}}, {.shape = {31}, .dims = {1}, .fill = 7.0});
  const Value spread = k.broadcast(k.reshape(t, {31, 1}), {31, 4});
  k.store(y, {p, Index{0}, Index{0}}, k.scan(Monoid::sum, spread, 1), {.dims = {1, 2}});
  testing::ParityOptions options;
  options.ranges = {{0, {-2, 2}}, {1, {-2, 4}}};
  check(k.finish({{{5, 1}}}), options);
}

TEST_P(ParityTest, TransposeAndReshape) {
  for (const DType d : {DType::f32, DType::bf16, DType::u8, DType::f64})
    for (const auto& [rows, columns] :
         {std::pair<Index, Index>{64, 64}, {5, 30}, {33, 17}, {1, 20}, {20, 1}, {48, 16}}) {
      check(unary_kernel(d, d, {rows, columns}, [](Builder& k, Value v) { return k.transpose(v); }));
      check(unary_kernel(d, d, {rows, columns},
                         [&](Builder& k, Value v) { return k.reshape(v, {rows * columns}); }));
      check(unary_kernel(d, d, {rows, columns},
                         [&](Builder& k, Value v) { return k.reshape(v, {columns, rows}); }));
      check(unary_kernel(d, d, {rows * columns},
                         [&](Builder& k, Value v) { return k.reshape(v, {rows, columns}); }));
    }
  check(unary_kernel(DType::f32, DType::f32, {12, 20},
                     [](Builder& k, Value v) { return exp(k.transpose(v * 2.f)) + 1.f; }));
  check(unary_kernel(DType::f32, DType::f32, {1},
                     [](Builder& k, Value v) { return k.broadcast(exp(k.reshape(v, {})), {40}); }));
}

TEST_P(ParityTest, LoopsCarryScalarsAndTiles) {
  Builder k("loops");
  const View x = k.view("x", DType::f32, {10, 50}), y = k.view("y", DType::f32, {50}),
             s = k.view("s", DType::f32, {2});
  const Value zero = k.literal(DType::f32, 0, {50});
  const auto out =
      k.loop(0, 10, 1, {zero, k.literal(DType::f32, 1), zero, k.literal(DType::f32, 2)},
             [&](Value i, const std::vector<Value>& c) {
               const Value t = k.load(x, {i, 0}, {.shape = {50}});
               // The tiles change places each time, and so do the scalars.
               return std::vector<Value>{c[2] + t, c[3], c[0] * 0.5f, c[1] + k.reduce(Monoid::max, t, 0)};
             });
  k.store(y, {0}, out[0] + 3.f * out[2]);
  k.store(s, {0}, out[1]);
  k.store(s, {1}, out[3]);
  check(k.finish({{{1, 1}}}));
}

TEST_P(ParityTest, NestedLoopsWithRuntimeBounds) {
  Builder k("nested");
  const Value n = k.scalar("n");
  const View x = k.view("x", DType::f32, {n, 8}), y = k.view("y", DType::f32, {n});
  const Value total =
      k.loop(0, n, 1, {k.literal(DType::f32, 0)}, [&](Value i, const std::vector<Value>& outer) {
        const Value inner = k.loop(0, i, 3, {outer[0]}, [&](Value j, const std::vector<Value>& c) {
          return std::vector<Value>{c[0] +
                                    k.reduce(Monoid::sum, k.load(x, {j, 0}, {.shape = {8}}), 0) * 0.1f};
        })[0];
        k.store(y, {i}, inner);
        return std::vector<Value>{inner * 0.5f};
      })[0];
  (void)total;
  check(k.finish({{{1, 1}}}), {.scalars = {9}});
}

TEST_P(ParityTest, BranchesYieldScalarsAndTiles) {
  Builder k("branch");
  const View x = k.view("x", DType::f32, {6, 40}), y = k.view("y", DType::f32, {6, 40}),
             s = k.view("s", DType::i64, {6});
  const Value p = k.program_id(0);
  const Value t = k.load(x, {p, 0}, {.shape = {40}});
  const auto out = k.branch(
      p % 2 == 0, [&] { return std::vector<Value>{exp(t), p * 10}; },
      [&] { return std::vector<Value>{t - k.reduce(Monoid::max, t, 0), p - 1}; });
  k.store(y, {p, 0}, out[0] * 2.f);
  k.store(s, {p}, out[1]);
  check(k.finish({{{6, 1}}}));
}

TEST_P(ParityTest, RandomWords) {
  Builder k("random");
  const Value seed = k.scalar("seed");
  const View y = k.view("y", DType::i64, {200}), z = k.view("z", DType::f32, {200}),
             s = k.view("s", DType::i64, {4});
  const Value start = k.program_id(0) * 64;
  const Value counter = start + k.arange(64);
  const Value word = k.random(seed, counter);
  k.store(y, {start}, word, {.bounded = true});
  const Value u = k.cast(k.apply(Prim::shr, {word, 8}), DType::f32) * 0x1p-24f;
  k.store(z, {start}, where(u < 0.1f, 0.f, u), {.bounded = true});
  k.store(s, {k.program_id(0)}, k.random(seed, k.literal_int(DType::i64, 5)));
  check(k.finish({{{200, 64}}}), {.scalars = {1234567}});
}

TEST_P(ParityTest, ScalarParametersOfEveryType) {
  Builder k("scalars");
  const Value n = k.scalar("n"), alpha = k.scalar("alpha", DType::f32), beta = k.scalar("beta", DType::f64);
  const View x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f64, {n});
  const Value start = k.program_id(0) * 32;
  const Value t = k.load(x, {start}, {.shape = {32}, .fill = 0.0}) * alpha;
  k.store(y, {start}, k.cast(t, DType::f64) + beta, {.bounded = true});
  check(k.finish({{{n, 32}}}),
        {.scalars = {77, scalar_bits(DType::f32, 1.5), scalar_bits(DType::f64, -0.25)}});
}

TEST_P(ParityTest, CausalMaskFromIndices) {
  Builder k("mask");
  const View x = k.view("x", DType::f32, {50, 60}), y = k.view("y", DType::f32, {50, 60});
  const Value i = k.program_id(0) * 16, j = k.program_id(1) * 32;
  const Value qi = k.expand(i + k.arange(16), 1), ki = k.expand(j + k.arange(32), 0);
  const Value t = k.load(x, {i, j}, {.shape = {16, 32}, .fill = 0.0});
  const Value f = k.cast(ki * 2 + qi, DType::f32);
  k.store(y, {i, j}, where((ki <= qi) & (ki % 3 != 1), t, f), {.bounded = true});
  check(k.finish({{{50, 16}}, {{60, 32}}}));
}

TEST_P(ParityTest, ThreeGridAxes) {
  Builder k("grid3");
  const Value n = k.scalar("n");
  const View x =
      k.view("x", DType::f32, {n, 3, 20}, {.strides = {{60, -1}, {20, -1}, {1, -1}}, .align_bytes = 4});
  const View y =
      k.view("y", DType::f32, {n, 3, 20}, {.strides = {{60, -1}, {20, -1}, {1, -1}}, .align_bytes = 4});
  const Value a = k.program_id(0), b = k.program_id(1), c = k.program_id(2) * 8;
  k.store(y, {a, b, c}, k.load(x, {a, b, c}, {.shape = {8}, .fill = 0.0}) + 1.f, {.bounded = true});
  check(k.finish({{{n, 1}}, {{3, 1}}, {{20, 8}}}), {.scalars = {5}});
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ParityTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tilewright::cpu
