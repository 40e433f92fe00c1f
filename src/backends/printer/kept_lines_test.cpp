// A number of a row that several loops read, or that is dear, is printed once where lines are kept.
#include "backends/printer/loop_plan.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::printer {
namespace {

// A row's maximum plus 1 is subtracted once before a sum, and once from what is stored.
constexpr const char* kRows = R"(kernel @rows(
    %x: view<f32,[64,32],strides=[32,1],align=256>,
    %out: view<f32,[64,32],strides=[32,1],align=256>)
    grid(cdiv(64,16)) {
  %0 = program_id 0 : i64
  %1 = constant 16 : i64
  %2 = mul %0, %1 : i64
  %3 = constant 0 : i64
  %4 = load %x[%2, %3] : tile<f32,[16,32]>
  %5 = reduce max %4 {axis=1} : tile<f32,[16]>
  %6 = reshape %5 : tile<f32,[16,1]>
  %7 = constant 1.0 : tile<f32,[16,1]>
  %higher = add %6, %7 : tile<f32,[16,1]>
  %9 = broadcast %higher : tile<f32,[16,32]>
  %10 = sub %4, %9 : tile<f32,[16,32]>
  %11 = reduce sum %10 {axis=1} : tile<f32,[16]>
  %12 = reshape %11 : tile<f32,[16,1]>
  %13 = mul %12, %higher : tile<f32,[16,1]>
  %14 = broadcast %13 : tile<f32,[16,32]>
  %15 = sub %4, %14 : tile<f32,[16,32]>
  store %out[%2, %3], %15 : tile<f32,[16,32]>
}
)";

int additions(const LoopPolicy& policy) {
  const tile::Kernel kernel = tile::parse(kRows).value();
  int count = 0;
  for_each_step(plan_loops(kernel, policy).steps, [&](const Step& step) {
    for (const Instr& in : step.loop.body)
      count += in.kind == Instr::Kind::compute && in.op->kind == tile::OpKind::apply &&
                       in.op->prim == tile::Prim::add
                   ? 1
                   : 0;
  });
  return count;
}

TEST(KeptLines, AreComputedOnceWhereSeveralLoopsReadThem) {
  EXPECT_EQ(additions({}), 2);
  EXPECT_EQ(additions({.lines = {.several_readers = true}}), 1);
}

// The row that is stretched along the tile costs one addition; the maximum it is made of is there.
TEST(KeptLines, AreComputedOnceWhereTheyAreDear) {
  EXPECT_EQ(additions({.lines = {.above_flops = 0.5}}), 1);
  EXPECT_EQ(additions({.lines = {.above_flops = 1}}), 2);
}

}  // namespace
}  // namespace tilewright::printer
