// argmax and argmin as a GPU finds them: many programs share a long axis, a block holds a short one.
#include "support/open_device.h"
#include "support/place_check.h"

#include <algorithm>

namespace tilewright::emulation {
namespace {

using test::GraphRunner;

TEST(EmulatedPlaces, OfExtremesAreThoseOfTheFirstOnes) {
  GraphRunner runner("emulated:sm_90a");
  test::expect_first_extremes([&](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
    return runner.run(passes::run_pipeline(graph, runner.device->target()), inputs);
  });
}

// Kernels for any size walk the axis in a loop, whatever their length.
TEST(EmulatedPlaces, OfExtremesInKernelsForAnySizeAreThoseOfTheFirstOnes) {
  GraphRunner runner("emulated:sm_90a");
  tile::Target target = runner.device->target();
  target.any_size = true;
  target.row_bytes = 0;
  for (const auto& [shape, axis] : {std::pair<Shape, Index>{{9001}, 0}, {{3, 5003}, 1}, {{2417, 5}, 0}})
    test::expect_first_extremes(
        [&](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
          return runner.run(passes::run_pipeline(graph, target), inputs);
        },
        {DType::f32, shape}, axis);
}

Index most_programs(const tile::Plan& plan) {
  Index most = 0;
  for (const tile::Kernel& kernel : plan.kernels) {
    Index programs = 1;
    for (const tile::GridAxis& axis : kernel.grid)
      for (const tile::GridFactor& f : axis) programs *= ceil_div(f.extent.value, f.block);
    most = std::max(most, programs);
  }
  return most;
}

TEST(EmulatedPlaces, OfLongAxesAreFoundByManyPrograms) {
  const auto device = test::open_device("emulated:sm_90a");
  struct Case {
    Shape shape;
    Index axis;
    std::size_t kernels;
    Index programs;  // at least
  };
  for (const Case& c : {Case{{1 << 24}, 0, 2, 528}, Case{{65536, 128}, 0, 2, 528},
                        Case{{704, 96, 32}, 0, 1, 132}, Case{{2176, 232, 48}, 1, 1, 2176}}) {
    ir::Graph graph("places");
    const ir::Value x{&graph, graph.add_input("x", {DType::bf16, c.shape})};
    graph.set_outputs({ops::argmax(x, c.axis).id});
    const passes::Compiled compiled = passes::run_pipeline(graph, device->target());
    EXPECT_EQ(compiled.plan.kernels.size(), c.kernels) << to_string(c.shape);
    EXPECT_GE(most_programs(compiled.plan), c.programs) << to_string(c.shape);
  }
}

}  // namespace
}  // namespace tilewright::emulation
