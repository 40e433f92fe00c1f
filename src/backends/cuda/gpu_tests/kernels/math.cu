// The largest error of each function over all 2^32 floats, against CUDA's float64 functions (1 to 2 units in
// the last place of float64, nothing beside what is measured).
#include "tw_cuda/math_fast.cuh"

using tw::u32;
using tw::u64;

// In units of f32's last place at the exact value. NaN must meet NaN, and infinity what rounds to it.
__device__ double error_ulp(float got, double exact) {
  if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0. : 1e30;
  if (isinf(got) && fabs(exact) >= 0x1.ffffffp127) return (got > 0.f) == (exact > 0.) ? 0. : 1e30;
  if (isinf(exact)) return 1e30;
  const double overflowed = got > 0.f ? 0x1p128 : -0x1p128;  // what an infinite result stands for
  const int exponent = fabs(exact) < 0x1p-126 ? -126 : ilogb(exact);
  return fabs(scalbn((isinf(got) ? overflowed : double(got)) - exact, 23 - exponent));
}
// Relative, for the fast set: results below 2^-126 may be flushed, those above 2^126 be infinite.
__device__ double error_relative(float got, double exact) {
  if (isnan(exact)) return isnan(got) ? 0. : 1e30;
  if (fabs(exact) < 0x1p-125) return fabs(double(got)) < 0x1p-124 ? 0. : 1e30;
  if (fabs(exact) >= 0x1p126) return fabs(got) >= 0x1p125f ? 0. : 1e30;
  return fabs(got / exact - 1.);
}

// worst: the error as float bits, above the bits of the argument that has it.
#define SWEEP(NAME, GOT, EXACT, ERROR)                                               \
  extern "C" __global__ void NAME(u64* worst) {                                      \
    u64 mine = 0;                                                                    \
    const u32 step = gridDim.x * blockDim.x;                                         \
    u32 bits = blockIdx.x * blockDim.x + threadIdx.x;                                \
    for (u32 left = u32(0x100000000ull / step); left != 0; --left, bits += step) {   \
      const float x = __uint_as_float(bits);                                         \
      const u64 error = u64(__float_as_uint(float(ERROR(GOT, EXACT)))) << 32 | bits; \
      mine = error > mine ? error : mine;                                            \
    }                                                                                \
    atomicMax(worst, mine);                                                          \
  }
#define ACCURATE(FUNCTION) SWEEP(FUNCTION##_ulp, tw::FUNCTION(x), FUNCTION(double(x)), error_ulp)
#define FAST(FUNCTION, EXACT) SWEEP(fast_##FUNCTION, tw::fast::FUNCTION(x), EXACT, error_relative)

ACCURATE(exp)
ACCURATE(exp2)
ACCURATE(expm1)
ACCURATE(log)
ACCURATE(log2)
ACCURATE(log1p)
ACCURATE(sin)
ACCURATE(cos)
ACCURATE(tan)
ACCURATE(tanh)
ACCURATE(erf)
ACCURATE(sqrt)
ACCURATE(rsqrt)
// A numerator for each divisor, of any size.
__device__ float numerator_of(float x) {
  return __uint_as_float(__float_as_uint(x) * 0x9e3779b9u + 0x7f4a7c15u);
}
SWEEP(div_ulp, tw::div(numerator_of(x), x), double(numerator_of(x)) / double(x), error_ulp)
SWEEP(reciprocal_ulp, tw::reciprocal(x), 1. / double(x), error_ulp)
SWEEP(sigmoid_ulp, tw::sigmoid(x), tw::sigmoid(double(x)), error_ulp)
SWEEP(floor_ulp, tw::floor(x), floor(double(x)), error_ulp)
SWEEP(round_ulp, tw::round(x), rint(double(x)), error_ulp)

FAST(exp, exp(double(x)))
FAST(exp2, exp2(double(x)))
FAST(log, log(double(x)))
FAST(log2, log2(double(x)))
FAST(sin, sin(double(x)))
FAST(cos, cos(double(x)))
FAST(tanh, tanh(double(x)))
FAST(sigmoid, tw::sigmoid(double(x)))
FAST(sqrt, sqrt(double(x)))
FAST(rsqrt, rsqrt(double(x)))
FAST(reciprocal, 1. / double(x))
