// gpu_tests: the tests that need a GPU, then with --measure the costs of the plumbing as JSON lines. No GPU
// is a failure. gpu_tests --bench-kernels, --bench-dots, --bench-scaled or --bench-attention FILE [NAME]
// times kernels instead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cuda/gpu_tests/bench_attention.h"
#include "backends/cuda/gpu_tests/bench_dots.h"
#include "backends/cuda/gpu_tests/bench_kernels.h"
#include "backends/cuda/gpu_tests/bench_scaled.h"
#include "backends/cuda/gpu_tests/measure.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool measure = argc > 1 && std::strcmp(argv[1], "--measure") == 0;
  try {
    if (argc > 2 && std::strcmp(argv[1], "--bench-kernels") == 0) {
      tilewright::cuda::bench_kernels(argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    if (argc > 2 && std::strcmp(argv[1], "--bench-dots") == 0) {
      tilewright::cuda::bench_dots(argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    if (argc > 2 && std::strcmp(argv[1], "--bench-scaled") == 0) {
      tilewright::cuda::bench_scaled(argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    if (argc > 2 && std::strcmp(argv[1], "--bench-attention") == 0) {
      tilewright::cuda::bench_attention(argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    auto& gpu = tilewright::cuda::Gpu::open();
    fmt::print("{{\"device\":\"{}\",\"driver\":\"{}\",\"nvrtc\":\"{}\",\"nvrtc_path\":\"{}\"}}\n",
               to_string(gpu.context.limits()), tilewright::cuda::must(driver_version(gpu.driver)),
               gpu.nvrtc.version(), gpu.nvrtc.library_path());
    const int failed = RUN_ALL_TESTS();
    if (measure) {
      measure_host_costs(gpu);
      measure_copies(gpu);
    }
    return failed;
  } catch (const tilewright::Error& error) {
    fmt::print(stderr, "gpu_tests: {}\n", error.what());
    return 1;
  }
}
