// out[i] = cast<To>(in[i]) one by one, and in vectors as kernels load and store them.
#include "tw_cuda/memory.cuh"

template <class To, class From>
__device__ void convert(const void* in, void* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) static_cast<To*>(out)[i] = tw::cast<To>(static_cast<const From*>(in)[i]);
}

// Sixteen elements a thread through f32 registers.
template <class To, class From>
__device__ void convert_vectors(const void* in, void* out, int n) {
  const int i = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const auto packed = tw::load<16>(static_cast<const From*>(in) + i);
  tw::store(static_cast<To*>(out) + i, tw::from_f32<To>(tw::to_f32(packed)));
}

using namespace tw;
#define CONVERT(FROM, TO)                                                       \
  extern "C" __global__ void FROM##_to_##TO(const void* in, void* out, int n) { \
    convert<TO, FROM>(in, out, n);                                              \
  }
#define VECTORS(FROM, TO)                                                             \
  extern "C" __global__ void FROM##_to_##TO##_x16(const void* in, void* out, int n) { \
    convert_vectors<TO, FROM>(in, out, n);                                            \
  }
#define TO_ALL(FROM)    \
  CONVERT(FROM, f64)    \
  CONVERT(FROM, f32)    \
  CONVERT(FROM, f16)    \
  CONVERT(FROM, bf16)   \
  CONVERT(FROM, f8e4m3) \
  CONVERT(FROM, f8e5m2) \
  CONVERT(FROM, i64)    \
  CONVERT(FROM, i32)    \
  CONVERT(FROM, i8)     \
  CONVERT(FROM, u8)     \
  CONVERT(FROM, bool)
TO_ALL(f64)
TO_ALL(f32)
TO_ALL(f16)
TO_ALL(bf16)
TO_ALL(f8e4m3)
TO_ALL(f8e5m2)
TO_ALL(i64)
TO_ALL(i32)
TO_ALL(i8)
TO_ALL(u8)
TO_ALL(bool)
VECTORS(f32, f16)
VECTORS(f32, bf16)
VECTORS(f32, f8e4m3)
VECTORS(f32, f8e5m2)
VECTORS(f16, f32)
VECTORS(bf16, f32)
VECTORS(f8e4m3, f32)
VECTORS(f8e5m2, f32)
