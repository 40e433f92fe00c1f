// Block reductions and scans for several block and group sizes; every thread writes what it got, so that a
// wrong broadcast is seen too. Two reductions in a row share one scratch, as generated kernels do.
#include "tw_cuda/block.cuh"

template <int kGroup>
__device__ void reduce(const float* x, const int* k, float* sum, float* product, float* largest,
                       float* smallest, int* arg, int* scanned, int* total, double* wide) {
  __shared__ tw::BlockScratch<float> floats;
  __shared__ tw::BlockScratch<int> ints;
  __shared__ tw::BlockScratch<double> doubles;
  __shared__ tw::BlockScratch<tw::Indexed<float>> pairs;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = tw::block_reduce<tw::Sum, kGroup>(x[i], floats, 0);
  product[i] = tw::block_reduce<tw::Product, kGroup>(1.f + x[i] * 0x1p-10f, floats, 1);
  largest[i] = tw::block_reduce<tw::Max, kGroup>(x[i], floats, 2);
  smallest[i] = tw::block_reduce<tw::Min, kGroup>(x[i], floats, 3);
  const tw::Indexed<float> mine = {x[i], int(threadIdx.x) % kGroup};
  arg[i] = tw::block_reduce<tw::ArgMax, kGroup>(mine, pairs, 0).index;
  scanned[i] = tw::block_scan<tw::Sum, kGroup>(k[i], ints, 0, total[i]);
  wide[i] = tw::block_reduce<tw::Sum, kGroup>(double(x[i]), doubles, 0);
}

#define REDUCE(GROUP)                                                                          \
  extern "C" __global__ void __launch_bounds__(1024)                                           \
      reduce_##GROUP(const float* x, const int* k, float* sum, float* product, float* largest, \
                     float* smallest, int* arg, int* scanned, int* total, double* wide) {      \
    reduce<GROUP>(x, k, sum, product, largest, smallest, arg, scanned, total, wide);           \
  }
REDUCE(1)
REDUCE(4)
REDUCE(32)
REDUCE(64)
REDUCE(96)
REDUCE(128)
REDUCE(160)
REDUCE(256)
REDUCE(1024)
