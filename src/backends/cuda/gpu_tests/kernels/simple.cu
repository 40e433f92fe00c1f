// The smallest kernels: for launches, graphs and their cost.
#include "tw_cuda/async.cuh"

extern "C" __global__ void empty() {}

// y[i] = x[i] * a + b
extern "C" __global__ void scale(const float* x, float* y, float a, float b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * a + b;
}

// The same behind a programmatic dependency on the kernel before.
extern "C" __global__ void scale_overlapped(const float* x, float* y, float a, float b, int n) {
#if __CUDA_ARCH__ >= 900
  tw::let_next_kernel_start();
  tw::wait_for_previous_kernel();
#endif
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * a + b;
}
