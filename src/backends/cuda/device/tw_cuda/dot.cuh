// Products of tiles in shared memory, accumulated in registers on the ordinary FMA units.
#pragma once

#include "tw_cuda/memory.cuh"

namespace tw {

// acc[r][c] += Σ_k a[row][k] · b[k][column] for the thread's kRows rows, kRowStep apart from `row`, and its
// kSteps vectors of N columns, kColStep apart from `col`. a is [kM, kK] with rows kPitchA elements apart, b
// [kK, …] with kPitchB; kPitchA is a multiple of 4 and kPitchB of N. Rows beyond kM repeat the last one, and
// vectors beyond kPitchB the last of their row.
template <int kRows, int kSteps, int kRowStep, int kColStep, int kM, int kK, int kPitchA, int kPitchB,
          class A, class B, class Acc, int N>
TW_DEVICE void dot_accumulate(Vec<Acc, N>* acc, const A* a, const B* b, int row, int col) {
  constexpr int kStep = kK % 4 == 0 ? 4 : 1;  // elements of a row of a that one access brings
  constexpr bool kInside = kSteps * kColStep <= kPitchB;
#pragma unroll 4
  for (int k = 0; k < kK; k += kStep) {
    Vec<A, kStep> a_k[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int at = row + r * kRowStep;
      a_k[r] = *reinterpret_cast<const Vec<A, kStep>*>(a + (at < kM ? at : kM - 1) * kPitchA + k);
    }
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
#pragma unroll
      for (int c = 0; c < kSteps; ++c) {
        const int at = col + c * kColStep;
        const int inside = kInside || at <= kPitchB - N ? at : kPitchB - N;
        const Vec<B, N> b_k = *reinterpret_cast<const Vec<B, N>*>(b + (k + i) * kPitchB + inside);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const Acc left = cast<Acc>(a_k[r].v[i]);
#pragma unroll
          for (int v = 0; v < N; ++v) acc[r * kSteps + c].v[v] += left * cast<Acc>(b_k.v[v]);
        }
      }
    }
  }
}

}  // namespace tw
