// The CUDA sources under kernels/, embedded by CMake. gpu_tests runs them; test_cuda compiles them where
// there is no GPU.
#pragma once

#include <string_view>

namespace tilewright::embedded {
extern const std::string_view gpu_test_cluster, gpu_test_convert, gpu_test_copy, gpu_test_math,
    gpu_test_philox, gpu_test_reduce, gpu_test_simple;
}

namespace tilewright::cuda {

struct TestKernel {
  std::string_view name;
  std::string_view text;
  bool needs_sm90 = false;
};
inline const TestKernel kTestKernels[] = {
    {"cluster", embedded::gpu_test_cluster, true},
    {"convert", embedded::gpu_test_convert},
    {"copy", embedded::gpu_test_copy},
    {"math", embedded::gpu_test_math},
    {"philox", embedded::gpu_test_philox},
    {"reduce", embedded::gpu_test_reduce},
    {"simple", embedded::gpu_test_simple},
};

}  // namespace tilewright::cuda
