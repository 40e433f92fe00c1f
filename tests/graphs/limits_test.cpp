// Every function and its gradient at the limits of every float type, against a table of expected values
// (support/limit_table.h), on each device and instruction set that this machine has.
#include "support/limit_check.h"

namespace tilewright::test {
namespace {

struct Machine {
  const char* device;
  const char* isa;
};

class Limits : public ::testing::TestWithParam<std::tuple<Machine, DType>> {
 protected:
  void SetUp() override {
    const Machine& machine = std::get<0>(GetParam());
    try {
      runner_ = std::make_unique<GraphRunner>(machine.device, machine.isa);
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();  // an instruction set that this machine lacks
    }
  }
  DType dtype() const { return std::get<1>(GetParam()); }
  // A graph's outputs on the device.
  RunGraph run() {
    return [this](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
      return runner_->run(passes::run_pipeline(graph, runner_->device->target()), inputs);
    };
  }
  std::unique_ptr<GraphRunner> runner_;
};

TEST_P(Limits, OfFunctionsOfOneNumberAreThoseOfTheTable) { expect_unary_limits(dtype(), run()); }
TEST_P(Limits, OfFunctionsOfTwoNumbersAreThoseOfTheTable) { expect_binary_limits(dtype(), run()); }
TEST_P(Limits, OfRowsAreThoseOfTheTable) {
  if (size_bytes(dtype()) >= 2) expect_row_limits(dtype(), run());
}

INSTANTIATE_TEST_SUITE_P(Devices, Limits,
                         ::testing::Combine(::testing::Values(Machine{"reference", ""}, Machine{"cpu", "amx"},
                                                              Machine{"cpu", "avx512"},
                                                              Machine{"cpu", "avx2"},
                                                              Machine{"cpu", "baseline"}),
                                            ::testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16,
                                                              DType::f8e4m3, DType::f8e5m2)),
                         [](const auto& info) {
                           const Machine& machine = std::get<0>(info.param);
                           return fmt::format("{}_{}_{}", machine.device,
                                              machine.isa[0] == '\0' ? "any" : machine.isa,
                                              name(std::get<1>(info.param)));
                         });

// The oracle of whole graphs holds the table as well, in float64.
TEST(LimitsOfTheOracle, AreThoseOfTheTable) {
  const auto evaluate = [](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
    return ops::evaluate(graph, inputs);
  };
  expect_unary_limits(DType::f64, evaluate);
  expect_binary_limits(DType::f64, evaluate);
  expect_row_limits(DType::f64, evaluate);
}

}  // namespace
}  // namespace tilewright::test
