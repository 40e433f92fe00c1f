// What fusion must get right whatever its cost model says.
#include "passes/fuse/fuse.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/nest/loop_nest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::passes {
namespace {

ir::Graph parsed(const std::string& text) { return ir::parse(text, ops::all_ops()).value(); }

// Every operand that a group reads is stored by a group before it.
void expect_ordered(const ir::Graph& graph, const Fusion& fusion) {
  std::set<ir::NodeId> stored;
  for (ir::NodeId id : graph.inputs()) stored.insert(id);
  for (const Group& group : fusion.groups) {
    const auto built = build_loop_nest(graph, group);
    ASSERT_TRUE(std::holds_alternative<LoopNest>(built));
    for (const Expr& s : std::get<LoopNest>(built).exprs)
      EXPECT_TRUE(s.kind != Expr::Kind::load || stored.count(s.node)) << "%" << s.node;
    stored.insert(group.outputs.begin(), group.outputs.end());
  }
}

// %7 is copied into both its readers, then %2, which %7 reads, must be copied into the same two.
TEST(Fusion, CopiesOfAProducerPassOnWhatItReads) {
  const ir::Graph graph = parsed(R"(graph @g(%x0: f32[], %x1: bool[5]) -> (f64[7], i32[7]) {
  %2 = neg %x0 : f32[]
  %3 = cast %2 {dtype=i32} : i32[]
  %4 = cast %x1 {dtype=i32} : i32[5]
  %5 = reshape %3 {shape=[1]} : i32[1]
  %6 = expand %5 {shape=[5]} : i32[5]
  %7 = sub %6, %4 : i32[5]
  %10 = pad %7 {high=[0], low=[2], value=1} : i32[7]
  %29 = floor %2 : f32[]
  %32 = cast %10 {dtype=f32} : f32[7]
  %37 = reshape %29 {shape=[1]} : f32[1]
  %38 = expand %37 {shape=[7]} : f32[7]
  %39 = lt %38, %32 : bool[7]
  %41 = cast %39 {dtype=f64} : f64[7]
  return %41, %10
}
)");
  expect_ordered(graph, fuse(graph, {}));
}

// The maxima of %a's rows are wanted along the product's columns, which its loop does not hold.
TEST(Fusion, ReductionsBesideAProductStandInItsRows) {
  const ir::Graph graph = parsed(R"(graph @g(%a: f32[26,31], %b: f32[31,26]) -> (f32[26,26]) {
  %2 = matmul %a, %b : f32[26,26]
  %3 = max %a {axes=[1]} : f32[26]
  %4 = reshape %3 {shape=[1,26]} : f32[1,26]
  %5 = expand %4 {shape=[26,26]} : f32[26,26]
  %6 = add %2, %5 : f32[26,26]
  return %6
}
)");
  const Group all{.nodes = {2, 3, 6}, .outputs = {6}};
  EXPECT_TRUE(std::holds_alternative<Refusal>(build_loop_nest(graph, all)));
  expect_ordered(graph, fuse(graph, {}));
}

// The rows of a concat would make two variables of one axis: the place of a maximum is counted along one.
TEST(Fusion, ThePlaceOfAMaximumIsCountedAlongOneVariable) {
  const ir::Graph graph = parsed(R"(graph @g(%a: f32[4,8], %b: f32[1,8]) -> (i64[]) {
  %2 = concat %a, %b {axis=0} : f32[5,8]
  %3 = reshape %2 {shape=[40]} : f32[40]
  %4 = argmax %3 {axes=[0]} : i64[]
  return %4
}
)");
  const auto built = build_loop_nest(graph, {.nodes = {4}, .outputs = {4}});
  ASSERT_TRUE(std::holds_alternative<LoopNest>(built));
  EXPECT_EQ(std::get<LoopNest>(built).extents, (Extents{40}));
}

Group all_of(const ir::Graph& graph) {
  Group group;
  for (ir::NodeId id = 0; id < graph.size(); ++id)
    if (!is_inlined(graph.node(id)) && !graph.node(id).operands.empty()) group.nodes.push_back(id);
  group.outputs = graph.outputs();
  return group;
}

// Two products of %x, one over %x's rows and one over its columns, both of these, and a gate of two.
TEST(Fusion, SumsOfOneLoopAreOnePlaceAndReadOneBlock) {
  const auto sums = [](const std::string& body, const std::string& types, const std::string& results) {
    const ir::Graph graph = parsed("graph @g(%x: f32[64,64], %a: f32[64,64], %b: f32[64,64]) -> (" + types +
                                   ") {\n" + body + "  return " + results + "\n}\n");
    const auto built = build_loop_nest(graph, all_of(graph));
    const auto* nest = std::get_if<LoopNest>(&built);
    return nest ? static_cast<int>(nest->outer_dots().size()) : 0;
  };
  const std::string two = R"(  %3 = matmul %x, %a : f32[64,64]
  %4 = matmul %x, %b : f32[64,64]
)";
  EXPECT_EQ(sums(two + "  %5 = mul %3, %4 : f32[64,64]\n", "f32[64,64]", "%5"), 2);
  // Nobody reads both: each is as fast alone.
  EXPECT_EQ(sums(two, "f32[64,64], f32[64,64]", "%3, %4"), 0);
  // No block in common, or one result transposed onto the other.
  EXPECT_EQ(sums(R"(  %3 = matmul %x, %a : f32[64,64]
  %4 = matmul %b, %x : f32[64,64]
  %5 = mul %3, %4 : f32[64,64]
)",
                 "f32[64,64]", "%5"),
            0);
  EXPECT_EQ(sums(two + R"(  %5 = transpose %4 {perm=[1,0]} : f32[64,64]
  %6 = mul %3, %5 : f32[64,64]
)",
                 "f32[64,64]", "%6"),
            0);
  // The second reads the first one's result, of which the loop computes blocks once more on the way.
  EXPECT_EQ(sums(R"(  %3 = matmul %x, %a : f32[64,64]
  %4 = matmul %3, %a : f32[64,64]
  %5 = mul %3, %4 : f32[64,64]
)",
                 "f32[64,64]", "%5"),
            2);
}

// The bytes that groups leave for others.
double stored_bytes(const ir::Graph& graph, const Fusion& fusion) {
  double bytes = 0;
  for (const Group& group : fusion.groups)
    for (ir::NodeId o : group.outputs)
      if (std::find(graph.outputs().begin(), graph.outputs().end(), o) == graph.outputs().end())
        bytes += static_cast<double>(graph.type(o).shape.size()) *
                 static_cast<double>(size_bytes(graph.type(o).dtype));
  return bytes;
}

// Centred rows, whose squares are summed, and which are scaled behind a transposition: no kernel does both.
constexpr const char* kCentredRows = R"(graph @g(%x: bf16[2048,512]) -> (bf16[512,2048]) {
  %1 = cast %x {dtype=f32} : f32[2048,512]
  %2 = sum %1 {axes=[1]} : f32[2048]
  %3 = reshape %2 {shape=[2048,1]} : f32[2048,1]
  %4 = expand %3 {shape=[2048,512]} : f32[2048,512]
  %5 = sub %1, %4 : f32[2048,512]
  %6 = mul %5, %5 : f32[2048,512]
  %7 = sum %6 {axes=[0]} : f32[512]
  %8 = transpose %5 {perm=[1,0]} : f32[512,2048]
  %9 = reshape %7 {shape=[512,1]} : f32[512,1]
  %10 = expand %9 {shape=[512,2048]} : f32[512,2048]
  %11 = mul %8, %10 : f32[512,2048]
  %12 = cast %11 {dtype=bf16} : bf16[512,2048]
  return %12
}
)";

TEST(Fusion, WhatIsWiderThanWhatItIsMadeOfIsComputedAgainByItsReaders) {
  const ir::Graph graph = parsed(kCentredRows);
  tile::Target target;  // one whose memory is what takes time
  target.cache_bytes = 1 << 16;
  target.flops_per_s = 1e13;
  const Fusion fusion = fuse(graph, target);
  expect_ordered(graph, fusion);
  // The two sums are left in memory, and no centred rows.
  EXPECT_LE(stored_bytes(graph, fusion), 4.0 * (2048 + 512));
  EXPECT_GE(stored_bytes(graph, fuse(graph, target, Recompute::never)), 4.0 * 2048 * 512);
}

// Scores that rows and columns are summed of: computed again for the room of all of them, and stored where
// they are pieces that take turns, for then they need the room of one.
TEST(Fusion, PiecesThatTakeTurnsNeedTheMemoryOfOne) {
  const ir::Graph graph = parsed(R"(graph @g(%x: f32[4096,64], %y: f32[64,4096]) -> (f32[4096], f32[4096]) {
  %2 = matmul %x, %y : f32[4096,4096]
  %3 = exp %2 : f32[4096,4096]
  %4 = sum %3 {axes=[1]} : f32[4096]
  %5 = sum %3 {axes=[0]} : f32[4096]
  return %4, %5
}
)");
  tile::Target target;
  target.cache_bytes = 1 << 20;
  target.flops_per_s = 1.5e11;  // a second product takes a little longer than writing and reading the scores
  const auto scores = 4.0 * 4096 * 4096;
  const auto stored = [&](Index pieces) {
    return stored_bytes(graph, fuse(graph, std::make_shared<GroupPlans>(target), {.pieces = pieces}));
  };
  EXPECT_LT(stored(1), scores);
  EXPECT_GE(stored(4096), scores);
}

// A matmul reads its operands from memory, however little they are made of.
TEST(Fusion, WhatAMatmulMultipliesStaysInMemory) {
  const ir::Graph graph =
      parsed(R"(graph @g(%x: bf16[2048,512], %w: f32[2048,64]) -> (f32[512,64], f32[2048]) {
  %2 = cast %x {dtype=f32} : f32[2048,512]
  %3 = sum %2 {axes=[1]} : f32[2048]
  %4 = reshape %3 {shape=[2048,1]} : f32[2048,1]
  %5 = expand %4 {shape=[2048,512]} : f32[2048,512]
  %6 = sub %2, %5 : f32[2048,512]
  %7 = mul %6, %6 : f32[2048,512]
  %8 = sum %7 {axes=[1]} : f32[2048]
  %9 = transpose %6 {perm=[1,0]} : f32[512,2048]
  %10 = matmul %9, %w : f32[512,64]
  return %10, %8
}
)");
  const Fusion fusion = fuse(graph, {});
  expect_ordered(graph, fusion);
  const auto has = [](const Group& group, ir::NodeId id) {
    return std::find(group.nodes.begin(), group.nodes.end(), id) != group.nodes.end();
  };
  EXPECT_FALSE(std::any_of(fusion.groups.begin(), fusion.groups.end(),
                           [&](const Group& group) { return has(group, 10) && has(group, 6); }));
}

}  // namespace
}  // namespace tilewright::passes
