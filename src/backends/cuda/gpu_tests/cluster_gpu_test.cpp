// Blocks of a cluster that share the rows of a tile, on the device against the reference interpreter: as
// tests/cuda_emulation/cluster_rows_test.cpp.
#include "backends/cuda/cuda_backend.h"
#include "support/backend_parity.h"
#include "support/column_kernels.h"

#include <gtest/gtest.h>

#include <array>

namespace tilewright::cuda {
namespace {

// Which block's columns arrive first differs from launch to launch; the order in which they are added does
// not.
TEST(ClusterRows, AreTheSameBitByBitInAHundredLaunches) {
  const auto backend = CudaBackend::open({}).value();
  if (!Arch::parse(backend->target().arch).value().has_clusters()) return;  // no such hardware
  using tile::samples::Columns;
  for (const Columns& c : {Columns{4096, 512, 256, 64}, Columns{1000, 300, 128, 64}})
    for (const tile::Kernel& kernel : {column_epilogue_reductions(c), sums_of_rounds(c)})
      for (const auto& [threads, row, cluster] : {std::array{256, 8, 8}, {128, 8, 4}, {512, 16, 2}}) {
        const tile::Schedule schedule{.threads = threads,
                                      .kind = tile::ElementLoops{.threads_per_row = row, .cluster = cluster}};
        std::string source;
        const auto r =
            test::check_parity(kernel, {.odd_share = 0, .model = {.scale = 32, .flush_subnormals = true}},
                               test::on_backend(*backend, schedule, source, 100));
        EXPECT_TRUE(r.ok()) << kernel.name << " [" << to_string(schedule) << "]: " << r.message;
      }
}

}  // namespace
}  // namespace tilewright::cuda
