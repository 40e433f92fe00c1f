// The columns of an accumulator of tensor cores combined over all its rows. Of every 8 columns thread t of a quad
// holds two, and the 8 quads of a warp hold other rows of the same columns. Every thread has kSteps · 2 values, so
// that combining all of them in every lane would be 6 shuffles a step; here the quads share them out: in each
// of three rounds a lane gives away half of what it has left, which is 7 shuffles for 4 steps. The warps' parts
// meet in shared memory.
#pragma once

#include "tw_cuda/exchange.cuh"

namespace tw {

namespace detail {
// Quads hold columns a multiple of 32 words apart, which would be one bank.
template <int kCols>
inline constexpr int padded_columns = kCols + kCols / 32;
TW_DEVICE int padded(int column) { return column + column / 32; }
}  // namespace detail

// Bytes of `stage`: kWarps · padded_columns. Afterwards every thread has the results of its columns.
template <class Op, int kWarps, int kSteps, class Who = WholeBlock, class T>
TW_DEVICE void reduce_columns(Vec<T, 2>* x, T* stage) {
  static_assert(kSteps % 4 == 0, "every quad gets as many values");
  constexpr int kRounds = 3, kCols = kSteps * 8, kMine = kSteps * 2 >> kRounds, kQuad = 4;
  constexpr int kPitch = detail::padded_columns<kCols>;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % kWarps, t = lane % kQuad;
  const auto column = [&](int value) { return detail::padded((value / 2 * kQuad + t) * 2 + value % 2); };
  T part[kSteps * 2];
#pragma unroll
  for (int i = 0; i < kSteps * 2; ++i) part[i] = x[i / 2].v[i % 2];
  int first = 0;  // of the values that this lane has left
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int kept = kSteps >> round, distance = 16 >> round;
    const bool upper = (lane & distance) != 0;
    first += upper ? kept : 0;
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const T given = upper ? part[i] : part[kept + i];
      part[i] = Op::template combine<T>(upper ? part[kept + i] : part[i], shuffle_xor(given, distance));
    }
  }
  Who::wait();  // whoever used the stage before is done
#pragma unroll
  for (int i = 0; i < kMine; ++i) stage[warp * kPitch + column(first + i)] = part[i];
  Who::wait();
  for (int c = int(threadIdx.x) % (kWarps * 32); c < kCols; c += kWarps * 32) {
    T all = stage[detail::padded(c)];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) all = Op::template combine<T>(all, stage[w * kPitch + detail::padded(c)]);
    stage[detail::padded(c)] = all;
  }
  Who::wait();
#pragma unroll
  for (int i = 0; i < kSteps * 2; ++i) x[i / 2].v[i % 2] = stage[column(i)];
}

}  // namespace tw
