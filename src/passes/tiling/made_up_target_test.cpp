// A device that nobody makes: how work is cut follows the numbers of its target, whatever they are.
#include "ops/composites.h"
#include "ops/functions.h"
#include "passes/tiling/b2b_tiles.h"
#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_shapes.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace tilewright::passes {
namespace {

using ir::Value;

// Blocks of 64 bytes in each row, aligned to 32; tiles of three by five.
tile::MatrixUnit odd_unit() {
  tile::MatrixUnit unit{
      .operands = {{.dtype = DType::f16, .fewest = 3, .fewest_depth = 8, .tiles = {{96, 160}, {48, 80}}},
                   {.dtype = DType::i8, .k_major = true, .fewest = 3, .tiles = {{96, 96}}}},
      .blocks = {.align_bytes = 32, .most_axes = 3, .row_bytes = 64},
      .column_step = 16,
      .any_size = {48, 80},
      .share = 0.5};
  unit.b2b = tile::B2bCuts{.ways = {{.rows = 48, .threads = 96, .registers = 100, .room_bytes = 96 << 10},
                                    {.rows = 24, .threads = 96, .registers = 100, .room_bytes = 96 << 10}}};
  return unit;
}

tile::Target odd_target() {
  tile::Target t;
  t.units = 4;
  t.max_threads = 96;
  t.vector_bytes = 16;
  t.sector_bytes = 32;
  t.flops_per_s = 1e12;
  t.matrix_flops_per_s = 1e14;
  t.vector_dots.edge = 40;
  t.matrix_units = {odd_unit()};
  return t;
}

struct Built {
  explicit Built(const std::function<Value(ir::Graph&)>& make) {
    const Value result = make(graph);
    Group group{.nodes = {}, .outputs = {result.id}};
    for (ir::NodeId id = 0; id <= result.id; ++id)
      if (graph.node(id).op->kind != ir::OpClass::input && !is_inlined(graph.node(id)))
        group.nodes.push_back(id);
    nest = std::get<LoopNest>(build_loop_nest(graph, group));
  }
  TileShape shape(const tile::Target& target) const { return choose_tiles(graph, nest, target); }

  ir::Graph graph{"made_up"};
  LoopNest nest;
};

Value input(ir::Graph& g, const char* name, DType dtype, const Shape& shape) {
  return Value{&g, g.add_input(name, {dtype, shape})};
}

Built product(Index m, Index n, Index k, DType dtype = DType::f16) {
  return Built(
      [&](ir::Graph& g) { return ops::matmul(input(g, "a", dtype, {m, k}), input(g, "b", dtype, {k, n})); });
}

std::array<Index, 3> edges(const TileShape& shape) { return {shape.rows, shape.columns, shape.depth}; }
using Edges = std::array<Index, 3>;

TEST(MadeUpTarget, ProductsAreCutIntoTheTilesOfItsUnit) {
  const tile::Target target = odd_target();
  EXPECT_EQ(edges(product(960, 1600, 64).shape(target)), (Edges{96, 160, 32}));
  // One wide tile, for four units.
  EXPECT_EQ(edges(product(96, 160, 64).shape(target)), (Edges{48, 80, 32}));
  tile::Target other = target;
  other.matrix_units[0].operands[0].tiles = {{56, 112}};
  EXPECT_EQ(edges(product(960, 1600, 64).shape(other)), (Edges{56, 112, 32}));
  other.matrix_units[0].blocks.row_bytes = 32;
  EXPECT_EQ(edges(product(960, 1600, 64).shape(other)), (Edges{56, 112, 16}));
}

TEST(MadeUpTarget, TilesAreRankedByTheUnitsRateWhereItHasOne) {
  tile::Target target = odd_target();
  tile::TileRate rate;
  rate.group_rows = 48;
  rate.step_bytes = 64;
  // Blocks are slow to arrive, and wide tiles want fewer.
  rate.flops_per_cycle = rate.chip_bytes_per_cycle = 1e6;
  target.matrix_units[0].rate = rate;
  EXPECT_EQ(edges(product(960, 1600, 64).shape(target)), (Edges{96, 160, 32}));
  // One wide tile leaves three of four units idle; four narrow ones take half as long, side by side.
  EXPECT_EQ(edges(product(96, 160, 64).shape(target)), (Edges{48, 80, 32}));
}

TEST(MadeUpTarget, WhatItsUnitDoesNotTakeIsLeftToTheOrdinaryUnits) {
  const tile::Target target = odd_target();
  EXPECT_FALSE(dot_on_matrix_unit(product(960, 1600, 64, DType::bf16).nest, target));
  EXPECT_EQ(product(960, 1600, 64, DType::bf16).shape(target).rows, 40);
  EXPECT_FALSE(dot_on_matrix_unit(product(2, 1600, 64).nest, target));
  EXPECT_FALSE(dot_on_matrix_unit(product(960, 1600, 64, DType::i8).nest, target)) << "b lies by rows";
  // Rows of 1608 elements are whole 16 bytes, and no whole 32.
  EXPECT_FALSE(dot_on_matrix_unit(product(960, 1608, 64).nest, target));
  tile::Target finer = target;
  finer.matrix_units[0].blocks.align_bytes = 16;
  EXPECT_TRUE(dot_on_matrix_unit(product(960, 1608, 64).nest, finer));
  tile::Target patient = target;
  patient.matrix_units[0].other_blocks = true;
  EXPECT_TRUE(dot_on_matrix_unit(product(960, 1608, 64).nest, patient));
}

Built attention(Index queries) {
  return Built([&](ir::Graph& g) {
    const Value q = input(g, "q", DType::f16, {8, queries, 64}), k = input(g, "k", DType::f16, {8, 512, 64}),
                v = input(g, "v", DType::f16, {8, 512, 64});
    const Value scores = ops::matmul(q, ops::transpose(k, {0, 2, 1}), DType::f32);
    return ops::matmul(ops::cast(ops::softmax(scores), DType::f16), v, DType::f32);
  });
}

TEST(MadeUpTarget, ChainsTakeTheWaysForWhichItsUnitHasRoom) {
  const Built b2b = attention(480);
  tile::Target target = odd_target();
  EXPECT_EQ(why_not_on_matrix_unit(b2b.nest, target), "");
  EXPECT_EQ(choose_dot_shape(b2b.nest, target).rows, 48);
  EXPECT_EQ(choose_dot_shape(attention(20).nest, target).rows, 24);
  target.matrix_units[0].b2b->ways[0].registers = 10;
  EXPECT_EQ(choose_dot_shape(b2b.nest, target).rows, 24);
  target.matrix_units[0].b2b->ways[1].room_bytes = 1 << 10;
  EXPECT_EQ(why_not_on_matrix_unit(b2b.nest, target), "its tiles have no room in registers or on chip");
  target.matrix_units[0].b2b.reset();
  EXPECT_EQ(why_not_on_matrix_unit(b2b.nest, target),
            "the target has no matrix unit for back-to-back matmuls");
  EXPECT_EQ(choose_dot_shape(b2b.nest, target).rows, target.b2b_blocks.rows);
}

TEST(MadeUpTarget, RowsAndElementsAreDealtOutAsItSays) {
  tile::Target target = odd_target();
  const Built sum = Built([](ir::Graph& g) {
    return ops::add(input(g, "x", DType::f32, {1 << 20}), input(g, "y", DType::f32, {1 << 20}));
  });
  target.rows.elements = 1234;
  EXPECT_EQ(sum.shape(target).columns, 1234);
  target.rows.access_bytes = 96 * 16;
  EXPECT_EQ(sum.shape(target).columns, 96 * 16 / 4);
}

TEST(MadeUpTarget, PlacesOfExtremesAreSharedAndHeldAsItSays) {
  tile::Target target = odd_target();
  target.rows.shared_programs = 2, target.rows.shared_elements = 1000;
  const auto shape = [&](const Shape& of, Index axis) {
    return Built([&](ir::Graph& g) { return ops::argmax(input(g, "x", DType::f32, of), axis); })
        .shape(target);
  };
  EXPECT_EQ(shape({1 << 20}, 0).split_k, 8) << "two programs for each of four units";
  EXPECT_EQ(shape({1 << 20, 4}, 0).split_k, 8);
  // A block's registers hold the whole axis: no loop carries places along.
  target.row_bytes = 32 << 10;
  const TileShape held = shape({1000, 64}, 0);
  EXPECT_EQ(held.split_k, 1);
  EXPECT_FALSE(held.looped);
  EXPECT_EQ(held.rows, 1000);
  EXPECT_TRUE(shape({2000, 64}, 0).looped);
}

}  // namespace
}  // namespace tilewright::passes
