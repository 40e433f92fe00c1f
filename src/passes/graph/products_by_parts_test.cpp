// Products are cut into parts where the target gains by it, and nowhere else.
#include "passes/graph/products_by_parts.h"

#include "ir/op.h"
#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/simplify.h"

#include <gtest/gtest.h>

#include <functional>

namespace tilewright::passes {
namespace {

using ir::Graph;
using ir::Value;

// A device whose matrix unit is twelve times as fast as its multiply-adds.
tile::Target target() {
  tile::Target t;
  t.units = 64;
  t.memory_bytes_per_s = 4e12;
  t.flops_per_s = 3e13;
  t.launch_s = 2e-6;
  t.vector_dots.tiles = {{.rows = 128, .columns = 128, .share = 0.8}};
  tile::MatrixOperands bf16{.dtype = DType::bf16, .tiles = {{128, 256}}, .two_level_tiles = {{128, 128}}};
  bf16.worth_parts = 0.85;
  t.matrix_units = {{.operands = {bf16}, .blocks = {.align_bytes = 16}, .rate = tile::TileRate{}}};
  t.matrix_units[0].rate->clock_hz = 1.5e9;
  t.matrix_units[0].rate->instructions_per_cycle = 128;
  t.matrix_units[0].rate->flops_per_cycle = 4096;
  t.matrix_units[0].rate->chip_bytes_per_cycle = 1000;
  t.matrix_units[0].rate->intake_bytes_per_cycle = 1000;
  t.matrix_units[0].b2b = tile::B2bCuts{.most_columns = 256};
  return t;
}

Value input(Graph& g, const char* name, const Shape& shape, DType dtype = DType::f32) {
  return {&g, g.add_input(name, {dtype, shape})};
}

// How many products of the graph are of parts.
int of_parts(const std::function<Value(Graph&)>& make, const tile::Target& t = target()) {
  Graph g("program");
  g.set_outputs({make(g).id});
  const Graph out = with_products_by_parts(g, t);
  int count = 0;
  for (const ir::Node& n : out.nodes()) count += n.attrs.has(ops::kPartsAttr) ? 1 : 0;
  return count;
}

Value large(Graph& g) { return ops::matmul(input(g, "a", {2048, 2048}), input(g, "b", {2048, 2048})); }

TEST(ProductsByParts, ALargeF32ProductIsThree) {
  EXPECT_EQ(of_parts(large), 3);
  EXPECT_EQ(of_parts([](Graph& g) {
              return ops::matmul(input(g, "a", {8, 1000, 1000}), input(g, "b", {8, 1000, 1000}));
            }),
            3);
}

TEST(ProductsByParts, WhatGainsNothingStays) {
  EXPECT_EQ(of_parts([](Graph& g) { return ops::matmul(input(g, "a", {64, 64}), input(g, "b", {64, 64})); }),
            0)
      << "launches would take longer";
  EXPECT_EQ(
      of_parts([](Graph& g) { return ops::matmul(input(g, "a", {8192, 32}), input(g, "b", {32, 8192})); }), 0)
      << "the result is many times larger than the operands";
  EXPECT_EQ(of_parts([](Graph& g) {
              return ops::matmul(input(g, "a", {2048, 2048}, DType::bf16),
                                 input(g, "b", {2048, 2048}, DType::bf16), DType::f32);
            }),
            0)
      << "the operands are narrow";
  EXPECT_EQ(of_parts([](Graph& g) {
              const Value q = input(g, "q", {64, 4096, 128}), k = input(g, "k", {64, 128, 4096});
              return ops::matmul(ops::softmax(ops::matmul(q, k)), input(g, "v", {64, 4096, 128}));
            }),
            0)
      << "attention is one kernel";
}

TEST(ProductsByParts, TheTargetDecides) {
  tile::Target t = target();
  t.tf32 = true;
  EXPECT_EQ(of_parts(large, t), 0) << "may be rounded, which is faster";
  t = target();
  t.any_size = true;
  EXPECT_EQ(of_parts(large, t), 0) << "sizes are not known";
  t = target();
  t.matrix_units[0].operands[0].two_level_tiles.clear();
  EXPECT_EQ(of_parts(large, t), 0) << "sums would be cut off";
  t = target();
  t.matrix_flops_per_s = 0;
  t.matrix_units.clear();
  EXPECT_EQ(of_parts(large, t), 0) << "no matrix unit";
}

TEST(ProductsByParts, AnOperandOfTwoProductsIsCutOnce) {
  Graph g("program");
  const Value x = input(g, "x", {2048, 2048});
  const Value y = ops::matmul(x, input(g, "a", {2048, 2048})) * ops::matmul(x, input(g, "b", {2048, 2048}));
  g.set_outputs({y.id});
  const Graph out = with_products_by_parts(g, target());
  int concats = 0;
  for (const ir::Node& n : out.nodes()) concats += n.op == &ops::kConcat ? 1 : 0;
  EXPECT_EQ(concats, 3);
}

TEST(ProductsByParts, AStretchedMatrixIsCutBeforeItIsStretched) {
  Graph g("program");
  const Value w = input(g, "w", {1, 1024, 2048});
  g.set_outputs({ops::matmul(input(g, "x", {32, 64, 1024}), ops::broadcast_to(w, {32, 1024, 2048})).id});
  const Graph out = with_products_by_parts(g, target());
  int concats = 0;
  for (const ir::Node& n : out.nodes()) {
    if (n.op != &ops::kConcat) continue;
    EXPECT_LE(n.type.shape.size(), 3 * 1024 * 2048);
    ++concats;
  }
  EXPECT_EQ(concats, 2);
}

}  // namespace
}  // namespace tilewright::passes
