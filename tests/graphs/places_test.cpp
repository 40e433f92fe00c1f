// argmax and argmin on the reference and the CPU.
#include "support/place_check.h"

namespace tilewright::test {
namespace {

TEST(Places, OfExtremesAreThoseOfTheFirstOnes) {
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    GraphRunner runner(device);
    expect_first_extremes([&](const ir::Graph& graph, std::span<const ir::HostTensor> inputs) {
      return runner.run(passes::run_pipeline(graph, runner.device->target()), inputs);
    });
  }
}

}  // namespace
}  // namespace tilewright::test
