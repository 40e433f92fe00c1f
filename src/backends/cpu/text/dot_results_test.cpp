// Loops of one round, and products that write the view where their results are stored.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"
#include "backends/cpu/text/single_rounds.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/text.h>

#include <algorithm>
#include <array>
#include <set>

namespace tilewright::cpu {
namespace {

using namespace tile;

struct Product {
  Index m, n, k;
  Index bm, bn, bk;
  DType dtype = DType::f32;
  bool b_by_columns = false;
  bool a_computed = false;
  enum class Then : unsigned char { store, add_and_store, store_twice, store_over_read } then = Then::store;
};

Kernel product(const Product& p) {
  Builder k("product");
  const View a = k.view("a", p.dtype, {p.m, p.k}),
             b = k.view("b", p.dtype, {p.k, p.n},
                        {.strides = p.b_by_columns ? std::vector<Dim>{{1, -1}, {p.k, -1}}
                                                   : std::vector<Dim>{{p.n, -1}, {1, -1}}}),
             c = k.view("c", p.dtype, {p.m, p.n}), d = k.view("d", p.dtype, {p.m, p.n});
  const Value row = k.program_id(0) * p.bm, column = k.program_id(1) * p.bn;
  const auto acc = k.loop(Index{0}, p.k, p.bk, {k.literal(p.dtype, 0.0, {p.bm, p.bn})},
                          [&](Value i, const std::vector<Value>& carried) {
                            Value left = k.load(a, {row, i}, {.shape = {p.bm, p.bk}, .fill = 0.0});
                            if (p.a_computed) left = left * 2.0;
                            const Value right = k.load(b, {i, column}, {.shape = {p.bk, p.bn}, .fill = 0.0});
                            return std::vector{k.dot(left, right, carried[0])};
                          });
  Value result = acc[0];
  if (p.then == Product::Then::add_and_store) result = result + 1.0;
  if (p.then == Product::Then::store_over_read)
    k.store(d, {row, column}, k.load(c, {row, column}, {.shape = {p.bm, p.bn}, .fill = 0.0}),
            {.bounded = true});
  k.store(c, {row, column}, result, {.bounded = true});
  if (p.then == Product::Then::store_twice) k.store(d, {row, column}, result, {.bounded = true});
  return k.finish({{{p.m, p.bm}}, {{p.n, p.bn}}});
}

std::string product_text(const Kernel& kernel) {
  return print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
int loops_of(const Kernel& kernel) {
  int loops = 0;
  for_each_op(kernel.body, [&](const Op& op) { loops += op.kind == OpKind::loop ? 1 : 0; });
  return loops;
}
// Whether every op reads arguments of its blocks, and results of ops before it.
bool reads_what_is_there(const Block& block, std::set<ValueId> there = {}) {
  there.insert(block.args.begin(), block.args.end());
  return std::all_of(block.ops.begin(), block.ops.end(), [&](const Op& op) {
    const bool fine =
        std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return there.count(v) != 0; }) &&
        std::all_of(op.blocks.begin(), op.blocks.end(),
                    [&](const Block& inner) { return reads_what_is_there(inner, there); });
    there.insert(op.results.begin(), op.results.end());
    return fine;
  });
}

TEST(SingleRoundsTest, LoopsOfOneRoundAreTheirBodies) {
  const Kernel once = product({.m = 12, .n = 32, .k = 20, .bm = 12, .bn = 32, .bk = 32});
  const Kernel twice = product({.m = 12, .n = 32, .k = 40, .bm = 12, .bn = 32, .bk = 32});
  ASSERT_EQ(loops_of(once), 1);
  const Kernel straight = inline_single_rounds(once);
  EXPECT_EQ(loops_of(straight), 0);
  EXPECT_TRUE(reads_what_is_there(straight.body)) << tile::print(straight);
  EXPECT_EQ(inline_single_rounds(twice), twice);
}

TEST(SingleRoundsTest, LoopsInsideOneAnotherHandOnWhatTheyCarry) {
  Builder k("nested");
  const View x = k.view("x", DType::f32, {8}), y = k.view("y", DType::f32, {8});
  const Value at = k.literal_int(DType::i64, 0);
  const auto sums =
      k.loop(Index{3}, Index{5}, Index{2}, {k.load(x, {at}, {.shape = {8}}), k.literal(DType::f32, 1.0, {8})},
             [&](Value i, const std::vector<Value>& outer) {
               const auto inner =
                   k.loop(i, Index{4}, Index{1}, {outer[0]}, [&](Value j, const std::vector<Value>& c) {
                     return std::vector{c[0] * k.broadcast(k.cast(j, DType::f32), {8}) + outer[1]};
                   });
               return std::vector{outer[1], inner[0]};
             });
  k.store(y, {at}, sums[0] - sums[1]);
  const Kernel kernel = k.finish({{{1, 1}}});
  const Kernel straight = inline_single_rounds(kernel);
  EXPECT_EQ(loops_of(straight), 0) << tile::print(straight);
  EXPECT_TRUE(reads_what_is_there(straight.body)) << tile::print(straight);
  testing::expect_parity(*CpuBackend::open({.threads = 1}).value(), kernel);
}

TEST(DotResultsTest, WhatIsStoredAsItIsHasNoBuffer) {
  const std::string whole = product_text(product({.m = 24, .n = 64, .k = 20, .bm = 12, .bn = 32, .bk = 32}));
  EXPECT_TRUE(contains(whole, "dot<32, 32, DotStart::zeros>")) << whole;
  const std::string ragged = product_text(product({.m = 25, .n = 70, .k = 20, .bm = 12, .bn = 48, .bk = 32}));
  EXPECT_TRUE(contains(ragged, "dot<48, 32, DotStart::zeros, DotEnd::within>")) << ragged;
  for (const std::string& text : {whole, ragged}) EXPECT_FALSE(contains(text, "for (i64 r")) << text;
}

TEST(DotResultsTest, OthersKeepTheirBuffer) {
  using Then = Product::Then;
  for (const Then then : {Then::add_and_store, Then::store_twice, Then::store_over_read}) {
    const std::string text =
        product_text(product({.m = 24, .n = 64, .k = 20, .bm = 12, .bn = 32, .bk = 32, .then = then}));
    EXPECT_TRUE(contains(text, "DotStart::zeros")) << text;
    EXPECT_TRUE(contains(text, "for (i64 r")) << text;
  }
  // Memory of b may be granted to what lies the same way in the same block.
  const std::string square = product_text(product({.m = 32, .n = 32, .k = 32, .bm = 32, .bn = 32, .bk = 32}));
  EXPECT_TRUE(contains(square, "for (i64 r")) << square;
  // Several rounds add to one another's.
  EXPECT_TRUE(contains(product_text(product({.m = 24, .n = 64, .k = 70, .bm = 12, .bn = 32, .bk = 32})),
                       "for (i64 r"));
}

using DotResultsOnIsa = testing::OnIsa;

TEST_P(DotResultsOnIsa, ProductsAreTheInterpreters) {
  for (const auto& [m, n, k, bm, bn, bk] : {std::array<Index, 6>{6, 16, 1, 6, 16, 16},
                                            {40, 96, 33, 40, 96, 48},
                                            {25, 70, 20, 12, 48, 32},
                                            {100, 65, 64, 100, 65, 64},
                                            {97, 64, 130, 97, 64, 144},
                                            {95, 200, 17, 95, 128, 32},
                                            {53, 31, 200, 53, 31, 256}})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool by_columns : {false, true})
        for (const bool computed : {false, true})
          check(product({.m = m,
                         .n = n,
                         .k = k,
                         .bm = bm,
                         .bn = bn,
                         .bk = bk,
                         .dtype = dtype,
                         .b_by_columns = by_columns,
                         .a_computed = computed}));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DotResultsOnIsa, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
