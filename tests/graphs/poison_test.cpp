// What is not used is never multiplied: padding of NaN and infinities leaves results and gradients alone.
#include "support/draws.h"
#include "support/poison_check.h"

namespace tilewright::test {
namespace {

class Poison : public ::testing::TestWithParam<std::tuple<const char*, DType>> {};

TEST_P(Poison, OfWhatIsNotUsedIsNotSeen) {
  const auto [device, dtype] = GetParam();
  GraphRunner runner(device);
  std::uint64_t number = 0;
  for (const bool deterministic : {false, true})
    for (const PoisonCase& c : poison_cases(dtype)) {
      // A fixed order changes what sums by index alone: gradients of pages and of picked rows.
      const bool by_index =
          c.name.find("paged") != std::string::npos || c.name.find("matmul") != std::string::npos;
      if (deterministic && (dtype != DType::f32 || !by_index)) continue;
      if (dtype != DType::f32 && !is_drawn(number++)) continue;
      const auto run = [&](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
        return runner.run(
            passes::run_pipeline(graph, runner.device->target(), {.deterministic = deterministic}), inputs);
      };
      expect_unpoisoned(c, run, dtype == DType::f32 ? 2e-5 : 0.05);
    }
}
INSTANTIATE_TEST_SUITE_P(Devices, Poison,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              name(std::get<1>(info.param)));
                         });

// The oracle, too, and one operation a kernel.
TEST(PoisonOneByOne, OfWhatIsNotUsedIsNotSeen) {
  GraphRunner runner("reference");
  for (const PoisonCase& c : poison_cases(DType::f32)) {
    expect_unpoisoned(
        c, [](const ir::Graph& g, std::span<const ir::HostTensor> in) { return ops::evaluate(g, in); },
        1e-12);
    const auto run = [&](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
      return runner.run(
          passes::run_pipeline(graph, runner.device->target(), {.fuse = false, .simplify = false}), inputs);
    };
    expect_unpoisoned(c, run, 2e-5);
  }
}

}  // namespace
}  // namespace tilewright::test
