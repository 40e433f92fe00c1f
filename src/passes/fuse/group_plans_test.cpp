// Equal groups are planned once, and each gets the plan in its own numbers.
#include "passes/fuse/group_plans.h"

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/fuse/fuse.h"

#include <tilewright/base/error.h>

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

const char* const kTwoSums = R"(graph @g(%a: f32[8,16], %b: f32[8,16], %c: f32[8,16]) -> (f32[8], f32[8]) {
  %3 = mul %a, %b : f32[8,16]
  %4 = sum %3 {axes=[1]} : f32[8]
  %5 = mul %c, %a : f32[8,16]
  %6 = sum %5 {axes=[1]} : f32[8]
  return %4, %6
}
)";

std::set<ir::NodeId> viewed(const Lowered& lowered) {
  std::set<ir::NodeId> nodes;
  for (const EmittedKernel& k : lowered.kernels)
    for (const BufferSource& view : k.views) nodes.insert(view.node);
  return nodes;
}

TEST(GroupPlans, EqualGroupsArePlannedOnceEachInItsOwnNumbers) {
  const ir::Graph graph = ir::parse(kTwoSums, ops::all_ops()).value();
  GroupPlans plans({});
  GroupForms forms(graph);
  const Group first{.nodes = {3, 4}, .outputs = {4}}, second{.nodes = {5, 6}, .outputs = {6}};
  const GroupPrice price = plans.price(graph, forms, first);
  EXPECT_EQ(price.refusal, Refusal::none);
  EXPECT_GT(price.seconds, 0);
  EXPECT_EQ(plans.price(graph, forms, second).seconds, price.seconds);
  const auto plan = plans.plan(graph, forms.of(second), second, {.name = "sums"});
  ASSERT_TRUE(std::holds_alternative<PlannedGroup>(plan));
  const auto& [cost, lowered] = std::get<PlannedGroup>(plan);
  EXPECT_EQ(viewed(lowered), (std::set<ir::NodeId>{0, 2, 6}));
  EXPECT_EQ(lowered.kernels.at(0).kernel.name, "sums");
  EXPECT_EQ(cost.seconds({}), price.seconds) << "what is taken is what was compared";
  EXPECT_EQ(plans.work().programs, 1U);
  EXPECT_EQ(plans.work().asked, 2U);
}

// The same nodes in a graph of its own, numbered otherwise.
TEST(GroupPlans, ServeOtherGraphsToo) {
  const ir::Graph graph = ir::parse(kTwoSums, ops::all_ops()).value();
  const ir::Graph other = ir::parse(R"(graph @h(%x: f32[], %y: f32[8,16], %z: f32[8,16]) -> (f32[8]) {
  %3 = mul %y, %z : f32[8,16]
  %4 = sum %3 {axes=[1]} : f32[8]
  return %4
}
)",
                                    ops::all_ops())
                              .value();
  GroupPlans plans({});
  GroupForms forms(graph), others(other);
  (void)plans.price(graph, forms, {.nodes = {5, 6}, .outputs = {6}});
  const Group same{.nodes = {3, 4}, .outputs = {4}};
  const auto plan = plans.plan(other, others.of(same), same, {.name = "sum"});
  ASSERT_TRUE(std::holds_alternative<PlannedGroup>(plan));
  EXPECT_EQ(viewed(std::get<PlannedGroup>(plan).lowered), (std::set<ir::NodeId>{1, 2, 4}));
  EXPECT_EQ(plans.work().programs, 1U);
}

// A product and a sum in one kernel.
double predicted_unless_both(const tile::Kernel& kernel, const tile::Target&) {
  bool multiplies = false, reduces = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    multiplies = multiplies || (op.kind == tile::OpKind::apply && op.prim == tile::Prim::mul);
    reduces = reduces || op.kind == tile::OpKind::reduce;
  });
  if (multiplies && reduces) throw Error("too much for one kernel");
  return 1;
}

TEST(GroupPlans, SayWhyAKernelCannotBeWritten) {
  const ir::Graph graph = ir::parse(kTwoSums, ops::all_ops()).value();
  tile::Target target;
  target.predicted_us = predicted_unless_both;
  const Fusion fusion = fuse(graph, target);
  ASSERT_FALSE(fusion.not_fused.empty());
  for (const NotFused& pair : fusion.not_fused) {
    EXPECT_EQ(pair.refusal.kind(), Refusal::not_written);
    EXPECT_EQ(explain(pair.refusal), "the kernel cannot be written: too much for one kernel");
  }
}

}  // namespace
}  // namespace tilewright::passes
