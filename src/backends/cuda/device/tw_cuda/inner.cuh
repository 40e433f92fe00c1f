// Sums of products along a row on tensor cores, four elements a lane and instruction: exact products, added
// in f32. Each quad of a warp has elements of its own: what quad i has is rows i and i + 8 of a and column i
// of b, so that of the 16 by 8 products only two, in the diagonals, are wanted. The others cost nothing:
// issuing instructions is what such loops meet first, not the tensor cores.
#pragma once

#include "tw_cuda/mma.cuh"

namespace tw {

// Sums of the quad that has row i: upper and lower are its first and second elements multiplied by its own.
struct InnerSums {
  Vec<f32, 2> upper = {}, lower = {};
};

// Adds first · by to the upper sums and second · by to the lower ones.
template <class T, int N>
TW_DEVICE void add_products(InnerSums& sums, const Vec<T, N>& first, const Vec<T, N>& second,
                            const Vec<T, N>& by) {
  static_assert(N % 4 == 0, "add_products: four elements a lane");
  const auto a = bit_cast<Vec<u32, N / 2>>(first), b = bit_cast<Vec<u32, N / 2>>(second),
             x = bit_cast<Vec<u32, N / 2>>(by);
#pragma unroll
  for (int i = 0; i < N / 2; i += 2)
    mma<T>(sums.upper, sums.lower, Vec<u32, 4>{{a.v[i], b.v[i], a.v[i + 1], b.v[i + 1]}}, x.v[i], x.v[i + 1]);
}
template <class T, int N>
TW_DEVICE void add_products(InnerSums& sums, const Vec<T, N>& first, const Vec<T, N>& by) {
  add_products(sums, first, Vec<T, N>{}, by);
}

// A lane's part of its quad's sum: one of four has it, the others nothing.
TW_DEVICE f32 on_diagonal(const Vec<f32, 2>& row) {
  const int quad = int(threadIdx.x) % 32 / 4;
  const f32 value = quad % 2 == 0 ? row.v[0] : row.v[1];
  return int(threadIdx.x) % 4 == quad / 2 ? value : 0.f;
}
TW_DEVICE f32 first_sum(const InnerSums& sums) { return on_diagonal(sums.upper); }
TW_DEVICE f32 second_sum(const InnerSums& sums) { return on_diagonal(sums.lower); }

}  // namespace tw
