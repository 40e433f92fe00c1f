// Shapes of values inside a frame.
#include "passes/emit/frame_values.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/nest/tile_shape.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

// The last block of rows overhangs; what a column's minimum picks is one value for all rows all the same.
TEST(FrameValues, AGatherVariesAlongTheAxesOfItsIndexAlone) {
  const ir::Graph graph = ir::parse(R"(graph @g(%x: f32[35,4], %table: f32[7]) -> (f32[4]) {
  %2 = min %x {axes=[0]} : f32[4]
  %3 = cast %2 {dtype=i32} : i32[4]
  %4 = take %table, %3 {axis=0} : f32[4]
  return %4
}
)",
                                    ops::all_ops())
                              .value();
  const auto nest = std::get<LoopNest>(build_loop_nest(graph, {.nodes = {2, 3, 4}, .outputs = {4}}));
  const TileShape shape{.row = 0, .column = 1, .rows = 32, .columns = 4, .looped = true};
  const tile::Kernel kernel = emit_tiles(graph, nest, shape, "k", {}).kernel;
  int gathers = 0;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    if (op.kind != tile::OpKind::gather) return;
    ++gathers;
    EXPECT_EQ(kernel.type(op.results[0]).shape, (std::vector<Index>{1, 4})) << tile::print(kernel);
  });
  EXPECT_EQ(gathers, 1);
}

// %scale is loaded before the loop, and widened where it multiplies: in the loop, and again behind it.
TEST(FrameValues, WhatIsWidenedInALoopIsNotThereBehindIt) {
  const ir::Graph graph = ir::parse(R"(graph @g(%x: bf16[35], %scale: bf16[]) -> (bf16[]) {
  %2 = reshape %scale {shape=[1]} : bf16[1]
  %3 = expand %2 {shape=[35]} : bf16[35]
  %4 = mul %x, %3 : bf16[35]
  %5 = sum %4 {axes=[0]} : bf16[]
  %6 = mul %5, %scale : bf16[]
  return %6
}
)",
                                    ops::all_ops())
                              .value();
  const auto nest = std::get<LoopNest>(build_loop_nest(graph, {.nodes = {4, 5, 6}, .outputs = {6}}));
  const TileShape shape{.column = 0, .columns = 8, .looped = true};
  EXPECT_NO_THROW(emit_tiles(graph, nest, shape, "k", {}));
}

// The second half reads %x backwards: outside of it the offset begins behind %x's end.
TEST(FrameValues, APickedRowOfAPartThatBeginsElsewhereIsAGather) {
  const ir::Graph graph = ir::parse(R"(graph @g(%x: f32[4,8,5], %i: i64[]) -> (f32[8,1,5]) {
  %2 = reshape %i {shape=[1]} : i64[1]
  %3 = take %x, %2 {axis=1} : f32[4,1,5]
  %4 = slice %3 {shape=[4,1,5], start=[3,0,0], step=[-1,1,1]} : f32[4,1,5]
  %5 = concat %3, %4 {axis=0} : f32[8,1,5]
  %6 = neg %5 : f32[8,1,5]
  return %6
}
)",
                                    ops::all_ops())
                              .value();
  const auto nest = std::get<LoopNest>(build_loop_nest(graph, {.nodes = {3, 6}, .outputs = {6}}));
  EXPECT_NO_THROW(emit_tiles(graph, nest, {.column = 1, .columns = 8}, "k", {})) << to_string(graph, nest);
}

}  // namespace
}  // namespace tilewright::passes
