// What a loop of dots is taken apart into: the loads behind its operands, what is computed on them, and
// which tile each dot adds to.
#include "backends/cuda/analysis/dot_loop.h"

#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>

namespace tilewright::cuda {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::OpKind;
using tile::Value;

const tile::Op& only_loop(const Kernel& kernel) {
  for (const tile::Op& op : kernel.body.ops)
    if (op.kind == OpKind::loop) return op;
  throw Error("no loop");
}

// c = a · bᵀ; `widen` puts a cast and a scale between the load of b and the dot.
Kernel matmul(bool widen, bool add_to_sum = false) {
  Builder k("matmul");
  auto a = k.view("a", DType::f32, {32, 64});
  auto b = k.view("b", widen ? DType::i8 : DType::f32, {16, 64});
  auto scale = k.view("scale", DType::f32, {64});
  auto c = k.view("c", DType::f32, {32, 16});
  auto acc = k.loop(0, 64, 16, {k.literal(DType::f32, 0, {32, 16})},
                    [&](Value i, const std::vector<Value>& carried) {
                      Value left = k.load(a, {0, i}, {.shape = {32, 16}});
                      Value right = k.load(b, {0, i}, {.shape = {16, 16}});
                      if (widen) right = k.cast(right, DType::f32) * k.load(scale, {i}, {.shape = {16}});
                      Value sum = k.dot(left, k.transpose(right), carried[0]);
                      return std::vector{add_to_sum ? sum + 1.0 : sum};
                    });
  k.store(c, {0, 0}, acc[0]);
  return k.finish({{{1, 1}}});
}

TEST(DotLoop, OperandsThatAreBlocksOfViewsNameTheirLoads) {
  const Kernel kernel = matmul(false);
  const auto found = find_dot_loop(kernel, only_loop(kernel));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->dots.size(), 1U);
  EXPECT_TRUE(found->only_dots);
  EXPECT_EQ(found->dots[0].carried, 0);
  ASSERT_TRUE(found->dots[0].a.load);
  EXPECT_EQ(found->dots[0].a.load->param, 0);
  EXPECT_FALSE(found->dots[0].a.transposed);
  ASSERT_TRUE(found->dots[0].b.load);
  EXPECT_EQ(found->dots[0].b.load->param, 1);
  EXPECT_TRUE(found->dots[0].b.transposed);
}

TEST(DotLoop, WhatIsComputedOnAnOperandIsListedInOrder) {
  const Kernel kernel = matmul(true);
  const auto found = find_dot_loop(kernel, only_loop(kernel));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->only_dots);
  const DotOperand& b = found->dots[0].b;
  EXPECT_EQ(b.load, nullptr);
  EXPECT_EQ(b.ops.front()->kind, OpKind::load);
  EXPECT_EQ(b.ops.back()->kind, OpKind::transpose);
  int loads = 0, casts = 0;
  for (const tile::Op* op : b.ops) loads += op->kind == OpKind::load, casts += op->kind == OpKind::cast;
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(casts, 1);
}

TEST(DotLoop, ASumThatIsUsedInTheBodyIsNoPlainAccumulation) {
  const Kernel kernel = matmul(false, true);
  EXPECT_FALSE(find_dot_loop(kernel, only_loop(kernel)));
}

}  // namespace
}  // namespace tilewright::cuda
