#include <gtest/gtest.h>
#include <tilewright/tile/text.h>
#include <tilewright/tile/verify.h>

#include <functional>

#include "support/sample_kernels.h"

namespace tilewright::tile {
namespace {

std::string problem_of(const Kernel& kernel) { return verify(kernel).value_or(""); }

// What is wrong with these ops, in a kernel with a few views, a size %n and a 4 × 2 grid.
std::string problem_in(const std::string& ops, const std::string& grid = "4, 2") {
  const std::string text =
      "kernel @k(%x: view<f32,[64],strides=[1],align=4>, %xx: view<f32,[64,64],strides=[64,1],align=4>, "
      "%h: view<bf16,[64],strides=[1],align=4>, %s: view<f32,[%n],strides=[1],align=4>, "
      "%b: view<f32,[64,64],strides=[0,1],align=4>, %i: view<i64,[64],strides=[1],align=8>, %n: i64, %a: "
      "f32) grid(" +
      grid +
      ") {\n%c0 = constant 0 : i64 %c1 = constant 1 : i64 %p0 = program_id 0 : i64 %p1 = program_id 1 : "
      "i64 " +
      "%n64 = scalar_param %n : i64\n" + ops + "\n}";
  const Result<Kernel> kernel = parse(text);
  return kernel.ok() ? "" : kernel.error().message;
}

void expect_refused(const std::string& ops, const std::string& message) {
  const std::string problem = problem_in(ops);
  EXPECT_NE(problem.find(message), std::string::npos) << ops << "\n-> " << problem;
}

TEST(Verify, MessageHasOpTextAndUsersPlace) {
  Kernel kernel = samples::elu();
  for (Op& op : kernel.body.ops)
    if (op.kind == OpKind::apply && op.prim == Prim::exp) op.prim = Prim::bit_not;
  const std::string problem = problem_of(kernel);
  EXPECT_NE(problem.find("%7 = not %4 : tile<f32,[1024]>: not defined on f32 (at sample_kernels.cpp:"),
            std::string::npos)
      << problem;
}

TEST(Verify, RefusesWrongTypes) {
  expect_refused("%v = load %x[%c0] : tile<f32,[4]> %r = and %v, %v : tile<f32,[4]>", "not defined on f32");
  expect_refused("%v = load %h[%c0] : tile<bf16,[4]> %r = exp %v : tile<bf16,[4]>",
                 "not defined on bf16; cast to f32 first");
  expect_refused("%r = add %c0, %c0 : i32", "the result is i32, should be i64");
  expect_refused("%f = constant 1.0 : f32 %r = add %f, %c0 : f32", "operand types differ: f32, i64");
  expect_refused("%v = arange : tile<i64,[4]> %r = add %v, %c0 : tile<i64,[4]>", "operand shapes differ");
  expect_refused("%r = select %c0, %c0, %c0 : i64", "the condition is i64");
  expect_refused("%r = exp %c0, %c0 : f32", "2 operands, wants 1");
  expect_refused("%r = eq %c0, %c1 : i64", "the result is i64, should be bool");
  expect_refused("%t = constant true : bool %r = shl %t, %t : bool", "not defined on bool");
  expect_refused("%r = arange : tile<f32,[4]>", "i64 tile of rank 1");
  expect_refused("%r = constant 300 : u8", "not an element of u8");
  expect_refused("%r = scalar_param %a : i64", "the result is i64, should be f32");
  expect_refused("%r = program_id 2 : i64", "the grid has 2 axes");
  expect_refused("%r = random %c0, %c0 : f32", "the result is f32");
}

TEST(Verify, RefusesWrongShapes) {
  expect_refused("%v = arange : tile<i64,[4]> %r = broadcast %v : tile<i64,[2,4]>", "does not stretch");
  expect_refused("%v = arange : tile<i64,[4]> %r = reshape %v : tile<i64,[2,3]>", "another type or size");
  expect_refused("%v = arange : tile<i64,[4]> %r = transpose %v : tile<i64,[4]>", "rank 2");
  expect_refused("%v = arange : tile<i64,[4]> %r = cast %v : tile<f32,[5]>", "should be tile<f32,[4]>");
  expect_refused("%v = arange : tile<i64,[4]> %r = reduce sum %v {axis=1} : i64", "axis 1 out of range");
  expect_refused("%v = arange : tile<i64,[4]> %r = reduce sum %v {axis=0} : tile<i64,[4]>", "should be i64");
  expect_refused("%v = arange : tile<i64,[4]> %r = reduce and %v {axis=0} : i64", "and is not defined on");
  expect_refused("%v = arange : tile<i64,[4]> %r = scan argmax %v {axis=0} : tile<i64,[4]>",
                 "not defined on");
  expect_refused("%v = arange : tile<i64,[4]> %r = argsort %v {axis=1} : tile<i32,[4]>",
                 "axis 1 out of range");
  expect_refused("%v = arange : tile<i64,[4]> %r = argsort %v {axis=0} : tile<i64,[4]>",
                 "should be tile<i32,[4]>");
  expect_refused("%v = constant 0.0 : tile<bf16,[4]> %r = argsort %v {axis=0} : tile<i32,[4]>",
                 "not defined on");
  expect_refused("%r = arange : tile<i64,[0]>", "an extent below 1");
  expect_refused("%r = arange : tile<i64,[4194305]>", "walk over it in a loop");
  expect_refused("%r = constant 0 : tile<i64,[1,1,1]>", "a rank above 2");
}

TEST(Verify, RefusesDotsThatDoNotMeet) {
  const std::string tiles =
      "%l = constant 0.0 : tile<bf16,[2,3]> %r = constant 0.0 : tile<bf16,[3,4]> "
      "%w = constant 0.0 : tile<f32,[2,4]> %v = constant 0.0 : tile<f32,[2,3]> %u = constant 0.0 : "
      "tile<bf16,[2,4]> ";
  EXPECT_EQ(problem_in(tiles + "%d = dot %l, %r, %w : tile<f32,[2,4]>"), "");
  expect_refused(tiles + "%d = dot %l, %l, %w : tile<f32,[2,4]>", "shapes do not meet");
  expect_refused(tiles + "%d = dot %v, %r, %w : tile<f32,[2,4]>", "operand types differ");
  expect_refused(tiles + "%d = dot %l, %r, %u : tile<bf16,[2,4]>", "bf16 accumulates in f32");
  expect_refused(tiles + "%d = dot %l, %r, %w {precision=tf32} : tile<f32,[2,4]>",
                 "is of f32 operands, not bf16");
}

TEST(Verify, RefusesWrongAccess) {
  expect_refused("%r = load %x[%c0, %c0] : f32", "2 operands for a view of rank 1, wants 1");
  expect_refused("%r = load %x[%c0] : tile<bf16,[4]>", "the view holds f32, the value is tile<bf16,[4]>");
  expect_refused("%v = arange : tile<i64,[4]> %r = load %x[%v] : f32", "a start is an i64 scalar");
  expect_refused("%r = load %xx[%c0, %c0] {dims=[1,1]} : tile<f32,[4,4]>", "two axes of the tile walk dim 1");
  expect_refused("%r = load %xx[%c0, %c0] {dims=[2]} : tile<f32,[4]>", "dim 2 of a view of rank 2");
  expect_refused("%v = arange : tile<i64,[4]> %r = gather %x[%v] : tile<f32,[5]>",
                 "an index is tile<i64,[4]>");
  expect_refused("%v = arange : tile<i64,[4]> %r = gather %x[%v], %v {fill=0.0} : tile<f32,[4]>",
                 "the mask is");
  expect_refused("%v = constant 0.0 : bf16 atomic_add %h[%c0], %v : bf16", "accumulate in f32");
}

TEST(Verify, RefusesWrongControl) {
  expect_refused("%f = constant 1.0 : f32 loop %q in %c0 to %f step %c1 { yield }",
                 "a bound is an i64 scalar");
  expect_refused("%r = loop %q in %c0 to %c1 step %c1 (%v = %c0) : i64 { %f = constant 1.0 : f32 yield %f }",
                 "carried value 0 changes from i64 to f32");
  expect_refused("%r = loop %q in %c0 to %c1 step %c1 (%v = %c0) : f32 { yield %v }",
                 "changes from i64 to f32");
  expect_refused("loop %q in %c0 to %c1 step %c1 { %v = constant 1 : i64 }", "a block ends with yield");
  expect_refused("loop %q in %c0 to %c1 step %c1 { yield yield }", "yield ends the block");
  expect_refused("yield", "yield ends the block");
  expect_refused("branch %c0 { yield } else { yield }", "the condition is a bool scalar, not i64");
  expect_refused("%t = constant true : bool %r = branch %t : i64 { yield %c0 } else { yield }",
                 "0 values for 1 results");
  expect_refused("loop %q in %c0 to %c1 step %c1 { %v = add %q, %q : i64 yield } %w = add %v, %v : i64",
                 "%v is used outside the block");
}

TEST(Verify, RefusesBlocksThatLeaveTheirView) {
  const std::string pid16 = "%k = constant 16 : i64 %st = mul %p0, %k : i64 ";
  EXPECT_EQ(problem_in(pid16 + "%r = load %x[%st] : tile<f32,[16]>"), "");
  expect_refused(pid16 + "%r = load %x[%st] : tile<f32,[17]>",
                 "the block leaves the view: dim 0 reaches 65 of 64; give a fill");
  EXPECT_EQ(problem_in(pid16 + "%r = load %x[%st] {fill=0.0} : tile<f32,[17]>"), "");
  expect_refused(pid16 + "%d = sub %st, %c1 : i64 %r = load %x[%d] : tile<f32,[4]>", "dim 0 starts at -1");
  expect_refused(
      "%e = constant 60 : i64 %st = constant 8 : i64 loop %q in %c0 to %e step %st { "
      "%r = load %x[%q] : tile<f32,[9]> yield }",
      "dim 0 reaches 65 of 64");
  expect_refused(pid16 + "%v = constant 0.0 : tile<f32,[17]> store %x[%st], %v : tile<f32,[17]>",
                 "make it bounded");
  // Under a condition, or with an unknown size, it is the kernel's promise.
  EXPECT_EQ(
      problem_in(
          "%t = eq %n64, %c0 : bool branch %t { %r = load %x[%c1] : tile<f32,[64]> yield } else { yield }"),
      "");
  EXPECT_EQ(problem_in("%r = load %s[%c1] : tile<f32,[64]>"), "");
  EXPECT_EQ(problem_in("loop %q in %c1 to %n64 step %c1 { %r = load %x[%q] : tile<f32,[64]> yield }"), "");
}

TEST(Verify, RefusesIndicesThatLeaveTheView) {
  expect_refused("%v = arange : tile<i64,[65]> %r = gather %x[%v] : tile<f32,[65]>",
                 "an index leaves the view: dim 0 has 64 of 64; give a mask");
  expect_refused(
      "%v = arange : tile<i64,[8]> %q = constant 10 : tile<i64,[8]> %w = mul %v, %q : tile<i64,[8]> "
      "%r = gather %x[%w] : tile<f32,[8]>",
      "dim 0 has 70 of 64");
  expect_refused(
      "%v = arange : tile<i64,[8]> %q = constant 1 : tile<i64,[8]> %w = sub %v, %q : tile<i64,[8]> "
      "%r = gather %s[%w] : tile<f32,[8]>",
      "dim 0 has -1; give a mask");
  // The last program's block: 3 · 20 + 7.
  expect_refused(
      "%k = constant 20 : i64 %a0 = mul %p0, %k : i64 %b0 = broadcast %a0 : tile<i64,[8]> "
      "%v = arange : tile<i64,[8]> %w = add %v, %b0 : tile<i64,[8]> "
      "%f = constant 0.0 : tile<f32,[8]> scatter %x[%w], %f : tile<f32,[8]>",
      "dim 0 has 67 of 64");
  // Rows times 16 plus columns.
  expect_refused(
      "%v = arange : tile<i64,[5]> %c = reshape %v : tile<i64,[5,1]> "
      "%c2 = broadcast %c : tile<i64,[5,2]> %q = constant 16 : tile<i64,[5,2]> "
      "%m = mul %c2, %q : tile<i64,[5,2]> %u = arange : tile<i64,[2]> "
      "%t = reshape %u : tile<i64,[1,2]> %t2 = broadcast %t : tile<i64,[5,2]> "
      "%w = add %m, %t2 : tile<i64,[5,2]> %r = gather %x[%w] : tile<f32,[5,2]>",
      "dim 0 has 65 of 64");
}

TEST(Verify, AcceptsIndicesThatMayLieInside) {
  // Two of one axis go together: v - v is 0, not 63 - 0; what depends on data or on a size may be anything.
  const char* accepted[] = {
      "%v = arange : tile<i64,[64]> %r = gather %x[%v] : tile<f32,[64]>",
      "%v = arange : tile<i64,[64]> %u = arange : tile<i64,[64]> %w = sub %v, %u : tile<i64,[64]> "
      "%r = gather %x[%w] : tile<f32,[64]>",
      "%v = arange : tile<i64,[65]> %r = gather %s[%v] : tile<f32,[65]>",
      "%v = load %i[%c0] : tile<i64,[8]> %r = gather %x[%v] : tile<f32,[8]>",
      "%v = arange : tile<i64,[65]> %q = constant 63 : tile<i64,[65]> %w = min %v, %q : tile<i64,[65]> "
      "%r = gather %x[%w] : tile<f32,[65]>",
      "%v = arange : tile<i64,[65]> %q = constant 64 : tile<i64,[65]> %m = lt %v, %q : tile<bool,[65]> "
      "%r = gather %x[%v], %m {fill=0.0} : tile<f32,[65]>",
  };
  for (const char* ops : accepted) EXPECT_EQ(problem_in(ops), "") << ops;
}

TEST(Verify, RefusesStoresThatMeetBetweenPrograms) {
  const std::string pids =
      "%k = constant 16 : i64 %st = mul %p0, %k : i64 %su = mul %p1, %k : i64 %v = constant 0.0 : "
      "tile<f32,[16]> "
      "%w = constant 0.0 : tile<f32,[17]> ";
  EXPECT_EQ(problem_in(pids + "store %xx[%p1, %st], %v : tile<f32,[16]>"), "");
  expect_refused(pids + "store %xx[%c0, %st], %v : tile<f32,[16]>",
                 "the blocks of different programs overlap along grid axis 1");
  expect_refused(pids + "store %xx[%p1, %st], %w {bounded=true} : tile<f32,[17]>",
                 "overlap along grid axis 0");
  expect_refused(pids + "store %b[%p1, %st], %v {dims=[0]} : tile<f32,[16]>",
                 "the view has stride 0 along dim 0");
  // A grid axis of one program, and one of unknown size.
  EXPECT_EQ(problem_in(pids + "store %xx[%c0, %st], %v : tile<f32,[16]>", "4, 1"), "");
  EXPECT_EQ(problem_in(pids + "store %xx[%c0, %st], %v : tile<f32,[16]>", "4, cdiv(%n,4)"), "");
  expect_refused(pids + "store %s[%st], %v {bounded=true} : tile<f32,[16]>", "overlap along grid axis 1");
  // Different for each index of a loop that each program runs over its own part.
  EXPECT_EQ(problem_in(pids + "%p1n = add %p1, %c1 : i64 loop %q in %p1 to %p1n step %c1 "
                              "{ store %xx[%q, %st], %v : tile<f32,[16]> yield }"),
            "");
}

TEST(Verify, RefusesViewsReadAndWrittenAtDifferentBlocks) {
  const std::string same =
      "%k = constant 8 : i64 %m = mul %p1, %k : i64 %st = add %m, %p0 : i64 %r = load %x[%st] : f32 ";
  EXPECT_EQ(problem_in(same + "%m2 = mul %k, %p1 : i64 %su = add %p0, %m2 : i64 store %x[%su], %r : f32"),
            "");
  expect_refused(same + "%su = add %st, %k : i64 store %x[%su], %r : f32",
                 "%x is both read and written, and the blocks may differ");
  expect_refused(same + "scatter %x[%st], %r : f32", "both read and written");
  expect_refused(same + "atomic_add %x[%st], %r : f32", "added to atomically and also read or stored");
}

TEST(Verify, RefusesBrokenParameters) {
  const auto refused = [](const std::function<void(Kernel&)>& change, const std::string& message) {
    Kernel kernel = samples::elu();
    change(kernel);
    EXPECT_NE(problem_of(kernel).find(message), std::string::npos)
        << message << "\n-> " << problem_of(kernel);
  };
  refused([](Kernel& k) { k.name = "a b"; }, "is not a name for a kernel");
  refused([](Kernel& k) { k.views[1].name = "x"; }, "the name %x is used twice");
  refused([](Kernel& k) { k.values[0].name = "x"; }, "the name %x is used twice");
  refused([](Kernel& k) { k.views[0].name = "1x"; }, "is not a name");
  refused([](Kernel& k) { k.views[0].align_bytes = 12; }, "alignment 12 is not a power of two");
  refused([](Kernel& k) { k.views[0].strides.clear(); }, "0 strides for 1 extents");
  refused([](Kernel& k) { k.views[0].extents[0] = {-1, -1}; }, "extent -1 is negative");
  refused([](Kernel& k) { k.views[0].extents[0] = {Index{1} << 60, -1}; }, "reaches further than");
  refused([](Kernel& k) { k.views[0].extents[0] = {0, 7}; }, "scalar parameter 7 does not exist");
  refused([](Kernel& k) { k.scalars[0].dtype = DType::i32; }, "i32");
  refused([](Kernel& k) { k.grid.clear(); }, "a grid has 1 to 3 axes, not 0");
  refused([](Kernel& k) { k.grid = {{}}; }, "an axis of the grid has no size");
  refused([](Kernel& k) { k.grid[0][0].block = 0; }, "the block 0 is not positive");
  refused([](Kernel& k) { k.grid = {{{{Index{1} << 40, -1}, 1}}}; }, "more than 2^31 - 1 programs");
  refused([](Kernel& k) { k.constants.push_back(k.constants[0]); }, "used twice");
  refused([](Kernel& k) { k.values.push_back({}); }, "has no definition");
  refused([](Kernel& k) { k.body.args.push_back(0); }, "the body of a kernel has no arguments");
}

TEST(Verify, RefusesBrokenOps) {
  const auto refused = [](const std::function<void(std::vector<Op>&)>& change, const std::string& message) {
    Kernel kernel = samples::elu();
    change(kernel.body.ops);
    EXPECT_NE(problem_of(kernel).find(message), std::string::npos)
        << message << "\n-> " << problem_of(kernel);
  };
  refused([](auto& ops) { std::swap(ops[3], ops[4]); }, "%start is used before it is defined");
  refused([](auto& ops) { ops.push_back(ops[1]); }, "value %1 is defined twice");
  refused([](auto& ops) { ops[3].operands[0] = 99; }, "value 99 does not exist");
  refused([](auto& ops) { ops[3].results[0] = -1; }, "value -1 does not exist");
  refused([](auto& ops) { ops[3].results.push_back(4); }, "2 results, wants 1");
  refused([](auto& ops) { ops[3].axis = 0; }, "a field is set that the op does not use");
  refused([](auto& ops) { ops[3].number.f = 1; }, "a field is set that the op does not use");
  refused([](auto& ops) { ops[3].blocks.emplace_back(); }, "1 blocks, wants 0");
  refused([](auto& ops) { ops[2].number.f = 1; }, "the literal is not an element of i64");
  refused([](auto& ops) { ops[5].number.f = 0.1; }, "the literal is not an element of f32");
  refused([](auto& ops) { ops[4].param = 9; }, "view 9 does not exist");
  refused([](auto& ops) { ops[4].number.f = 0.1; }, "the fill is not an element of f32");
  refused([](auto& ops) { ops[0].param = 1; }, "scalar parameter 1 does not exist");
  refused([](auto& ops) { ops[7].prim = static_cast<Prim>(200); }, "no such primitive");
}

TEST(Verify, AcceptsTheSamples) {
  EXPECT_EQ(problem_of(samples::row_softmax_looped(DType::f16, 7, 1000, 256)), "");
  EXPECT_EQ(problem_of(samples::attention(
                DType::bf16, {.heads = 2, .tokens = 50, .width = 16, .block_m = 16, .block_n = 8})),
            "");
  EXPECT_EQ(problem_of(samples::column_sums_atomic(1000, 33, 64, 16)), "");
}

}  // namespace
}  // namespace tilewright::tile
