// out[i] = word `first + i` of the stream of `seed`; four neighbours a thread, as generated kernels ask for
// them.
#include "tw_cuda/philox.cuh"

extern "C" __global__ void words(unsigned long long seed, unsigned long long first, unsigned* out) {
  const unsigned long long base = 4ull * (blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = 0; i < 4; ++i) out[base + i] = tw::philox_word(seed, first + base + i);
}
