// Reductions over a cluster of 256-thread blocks, three in a row through one scratch.
#include "tw_cuda/cluster.cuh"

template <int kBlocks>
__device__ void reduce(const float* x, float* sum, float* largest, int* arg) {
  __shared__ tw::ClusterScratch<float> floats;
  __shared__ tw::ClusterScratch<tw::Indexed<float>> pairs;
  tw::cluster_sync();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = tw::cluster_reduce<tw::Sum, 256, kBlocks>(x[i], floats, 0);
  largest[i] = tw::cluster_reduce<tw::Max, 256, kBlocks>(x[i], floats, 1);
  const tw::Indexed<float> mine = {x[i], int(tw::cluster_rank() * 256 + threadIdx.x)};
  arg[i] = tw::cluster_reduce<tw::ArgMin, 256, kBlocks>(mine, pairs, 0).index;
}

#define REDUCE(BLOCKS)                                                        \
  extern "C" __global__ void __launch_bounds__(256)                           \
      reduce_##BLOCKS(const float* x, float* sum, float* largest, int* arg) { \
    reduce<BLOCKS>(x, sum, largest, arg);                                     \
  }
REDUCE(2)
REDUCE(4)
REDUCE(8)
REDUCE(16)
