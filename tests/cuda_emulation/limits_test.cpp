// The tables of limits (support/limit_table.h), padding that nothing may read (support/poison_check.h), and
// long running sums, on printed CUDA kernels.
#include "support/limit_check.h"
#include "support/poison_check.h"

namespace tilewright::test {
namespace {

class EmulatedLimits : public ::testing::TestWithParam<DType> {
 protected:
  RunGraph run() {
    return [this](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
      return runner_.run(passes::run_pipeline(graph, runner_.device->target()), inputs);
    };
  }
  DType dtype() const { return GetParam(); }
  GraphRunner runner_{"emulated:sm_90a"};
};

// Odd polynomials add the argument last, to a product of two zeros: 0 (math.cuh says so of sin).
TEST_P(EmulatedLimits, OfFunctionsOfOneNumberAreThoseOfTheTable) {
  expect_unary_limits(dtype(), run(), {"sin", "tan", "tanh"});
}
TEST_P(EmulatedLimits, OfFunctionsOfTwoNumbersAreThoseOfTheTable) { expect_binary_limits(dtype(), run()); }
TEST_P(EmulatedLimits, OfRowsAreThoseOfTheTable) {
  if (size_bytes(dtype()) >= 2) expect_row_limits(dtype(), run());
}
TEST_P(EmulatedLimits, OfWhatIsNotUsedIsNotSeen) {
  if (dtype() != DType::f32 && dtype() != DType::bf16) return;
  for (const PoisonCase& c : poison_cases(dtype()))
    expect_unpoisoned(c, run(), dtype() == DType::f32 ? 2e-5 : 0.05);
}

INSTANTIATE_TEST_SUITE_P(Types, EmulatedLimits,
                         ::testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                           DType::f8e5m2),
                         [](const auto& info) { return std::string(name(info.param)); });

// A row longer than a block has threads: what comes before an element is a running total of many steps.
TEST(EmulatedScans, KeepTheirDigits) {
  GraphRunner runner("emulated:sm_90a");
  for (const int axis : {0, 1}) {
    ir::Graph graph("running");
    const Shape shape = axis == 1 ? Shape{1, 40'000} : Shape{6'000, 2};
    const ir::Value x{&graph, graph.add_input("x", {DType::f32, shape})};
    graph.set_outputs({ops::cumsum(x, axis).id});
    const std::vector<ir::HostTensor> inputs = {
        host_floats(DType::f32, shape, std::vector<double>(static_cast<std::size_t>(shape.size()), 0.1))};
    const auto got = runner.run(passes::run_pipeline(graph, runner.device->target()), inputs)[0],
               want = ops::evaluate(graph, inputs)[0];
    EXPECT_EQ(difference(got, want, {1e-6, 0}), "") << "along axis " << axis;
  }
}

}  // namespace
}  // namespace tilewright::test
