// Sums over all axes of what was computed with statistics of rows or columns: tensors that are more than one
// program holds, so that passes::with_sums_by_rows() parts the sums.
#include "support/host_values.h"
#include "support/limit_check.h"

#include "ops/functions.h"
#include "ops/rows.h"

namespace tilewright::test {
namespace {

using ir::Value;

// Kullback-Leibler divergence of two tables of logits, the squared distance of normalised rows from others,
// and their largest difference; then what the first two sums' terms and the extreme's operands come to by
// magnitude.
ir::Graph losses(const Shape& shape, const std::vector<Index>& rows, const std::vector<Index>& all) {
  ir::Graph g("losses");
  const auto input = [&](const char* name) { return Value{&g, g.add_input(name, {DType::f32, shape})}; };
  const auto along = [&](Value x) { return ops::broadcast_to(x, shape); };
  const auto log_softmax = [&](Value x) {
    const Value off = x - along(ops::max(x, rows, ops::Keep::yes));
    return off - along(ops::log(ops::sum(ops::exp(off), rows, ops::Keep::yes)));
  };
  const Value x = input("x"), y = input("y");
  const Value p = log_softmax(x), q = log_softmax(y);
  const Value norm = along(ops::rsqrt(ops::sum(x * x, rows, ops::Keep::yes) + 1.0));
  const Value scaled = x * norm - y, sizes = ops::abs(x * norm) + ops::abs(y);
  g.set_outputs({ops::sum(ops::exp(p) * (p - q), all).id, ops::sum(scaled * scaled, all).id,
                 ops::max(scaled, all).id, ops::sum(ops::exp(p) * (ops::abs(p) + ops::abs(q)), all).id,
                 ops::sum(sizes * sizes, all).id, ops::max(sizes, all).id});
  return g;
}

TEST(SumsByRows, AreTheSumsOverAllAxes) {
  struct Case {
    Shape shape;
    std::vector<Index> rows, all;
  };
  const Case cases[] = {{{4001, 67}, {1}, {0, 1}},          {{67, 4001}, {0}, {0, 1}},
                        {{31, 67, 129}, {1, 2}, {0, 1, 2}}, {{31, 67, 129}, {0, 2}, {0, 1, 2}},
                        {{31, 67, 129}, {1}, {0, 1}},       {{3, 90001}, {1}, {0, 1}}};
  for (const char* device : {"reference", "cpu"}) {
    GraphRunner runner(device);
    std::uint64_t seed = 1;
    for (const Case& c : cases) {
      SCOPED_TRACE(fmt::format("{} {}", device, to_string(c.shape)));
      const ir::Graph graph = losses(c.shape, c.rows, c.all);
      Random random(seed++);
      const ir::Type type{DType::f32, c.shape};
      const std::vector<ir::HostTensor> inputs = {random_host(type, {}, random),
                                                  random_host(type, {}, random)};
      const auto want = ops::evaluate(graph, inputs),
                 got = runner.run(passes::run_pipeline(graph, runner.device->target()), inputs);
      ASSERT_EQ(got.size(), want.size());
      // Each level of a sum of n terms is off by (n - 1) roundings of the terms' magnitudes (N. Higham,
      // Accuracy and Stability of Numerical Algorithms, 4.2); a term by those of a row's sum and of a few
      // steps.
      Index row = 1;
      for (const Index axis : c.rows) row *= c.shape[static_cast<int>(axis)];
      constexpr double kSteps = 64;
      const double roundings = static_cast<double>(2 * row + c.shape.size() / row) + kSteps;
      const std::size_t results = want.size() / 2;
      for (std::size_t o = 0; o < results; ++o)
        for (std::size_t i = 0; i < want[o].f.size(); ++i)
          EXPECT_NEAR(got[o].f[i], want[o].f[i], roundings * 0x1p-24 * want[results + o].f[i])
              << "output " << o;
    }
  }
}

}  // namespace
}  // namespace tilewright::test
