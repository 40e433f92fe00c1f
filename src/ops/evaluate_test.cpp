// The oracle in blocks gives what one op at a time gives, on sizes that do not divide into blocks.
#include "ops/composites.h"
#include "ops/ops.h"
#include "support/host_values.h"

#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

// Chains of elementwise ops that end in other chains, reductions between them, intermediate and repeated
// outputs, several types.
ir::Graph tangled(const Shape& shape) {
  ir::Graph g;
  const Value x{&g, g.add_input("x", {DType::f32, shape})};
  const Value n{&g, g.add_input("n", {DType::i32, shape})};
  const Value a = exp(x * 0.25) + cast(n, DType::f32);
  const Value chosen = where(gt(a, 1.0), a, cast(bit_and(n, 3), DType::bf16));
  const Value normal = layer_norm(chosen, std::nullopt, std::nullopt);
  const Value flat = reshape(normal * a, {-1});
  const Value reversed = reshape(flip(flat, {0}), shape) + a;
  const Value row = max(reversed, {0});
  g.set_outputs(
      {reversed.id, a.id, row.id, a.id, x.id, add(n, n).id, sum(exp(-abs(reversed))).id, normal.id});
  return g;
}

void expect_blocks_change_nothing(const Shape& shape) {
  const ir::Graph g = tangled(shape);
  test::Random random(1);
  std::vector<ir::HostTensor> inputs;
  for (ir::NodeId id : g.inputs()) inputs.push_back(test::random_host(g.type(id), {}, random));
  const auto blocks = evaluate(g, inputs);
  const auto one_by_one = evaluate(g, inputs, [](const ir::Node&, ir::HostTensor&) {});
  ASSERT_EQ(blocks.size(), one_by_one.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(test::difference(blocks[i], one_by_one[i]), "") << "output " << i << " at " << to_string(shape);
}

TEST(Evaluate, BlocksChangeNothing) {
  expect_blocks_change_nothing({3, 5});
  expect_blocks_change_nothing({131, 257});
  expect_blocks_change_nothing({1, 65536});
}

TEST(Evaluate, ThreadsChangeNothing) { expect_blocks_change_nothing({1031, 1033}); }

TEST(Evaluate, ObserversMayChangeValues) {
  ir::Graph g;
  const Value x{&g, g.add_input("x", {DType::f64, {2}})};
  g.set_outputs({(x + 1.0).id});
  ir::HostTensor input;
  input.type = x.type();
  input.f = {1, 2};
  const auto out = evaluate(g, {&input, 1}, [](const ir::Node&, ir::HostTensor& value) {
    for (double& v : value.f) v *= 10;
  });
  EXPECT_EQ(out[0].f, (std::vector<double>{200, 300}));  // (1 * 10 + 1 * 10) * 10
  EXPECT_EQ(input.f, (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tilewright::ops
