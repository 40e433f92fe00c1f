// The columns of an accumulator of tensor cores combined over all its rows. Of every 8 columns thread t of a
// quad holds two, and the 8 quads of a warp hold other rows of the same columns. Every thread has kSteps · 2
// values, so that combining all of them in every lane would be 6 shuffles a step; here the quads share them
// out: in each of three rounds a lane gives away half of what it has left, which is 7 shuffles for 4 steps.
// The warps' parts meet in shared memory.
#pragma once

#include "tw_cuda/exchange.cuh"

namespace tw {

namespace detail {
// Place of a column in a warp's part, padded: what the quads leave is a multiple of 32 columns apart, which
// would be one bank.
TW_DEVICE constexpr int padded(int column) { return column + column / 32; }
// Place of a thread's own column: those of thread t lie 2 t behind those of thread 0, all at constant places:
// one address in a register, not one for each, which the compiler would keep from tile to tile.
TW_DEVICE constexpr int place_of(int value) { return padded(value / 2 * 8 + value % 2); }

// Keeps half of twice kKept values, combined, in each of two lanes kDistance apart. Returns the first kept.
template <class Op, int kKept, int kDistance, class T, int kAll>
TW_DEVICE int share_out(T (&part)[kAll]) {
  const bool upper = (threadIdx.x & kDistance) != 0;
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const T given = upper ? part[i] : part[kKept + i], own = upper ? part[kKept + i] : part[i];
    part[i] = Op::template combine<T>(own, shuffle_xor(given, kDistance));
  }
  return upper ? kKept : 0;
}
}  // namespace detail

// Elements of `stage`: kWarps · padded(columns). Afterwards every thread has the results of its columns.
template <class Op, int kWarps, int kSteps, class Who = UnmaskedBlock, class T>
TW_DEVICE void reduce_columns(Vec<T, 2>* x, T* stage) {
  static_assert(kSteps % 4 == 0, "every quad gets as many values");
  constexpr int kCols = kSteps * 8, kMine = kSteps / 4, kQuad = 4;
  constexpr int kPitch = detail::padded(kCols);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % kWarps, t = lane % kQuad;
  T* const own = stage + 2 * t;
  T part[kSteps * 2];
#pragma unroll
  for (int i = 0; i < kSteps * 2; ++i) part[i] = x[i / 2].v[i % 2];
  int first = detail::share_out<Op, kSteps, 16>(part);
  first += detail::share_out<Op, kSteps / 2, 8>(part);
  first += detail::share_out<Op, kSteps / 4, 4>(part);
  Who::wait();  // whoever used the stage before is done
#pragma unroll
  for (int i = 0; i < kMine; ++i) own[warp * kPitch + detail::place_of(first + i)] = part[i];
  Who::wait();
  for (int c = int(threadIdx.x) % (kWarps * 32); c < kCols; c += kWarps * 32) {
    T all = stage[detail::padded(c)];
#pragma unroll
    for (int w = 1; w < kWarps; ++w)
      all = Op::template combine<T>(all, stage[w * kPitch + detail::padded(c)]);
    stage[detail::padded(c)] = all;
  }
  Who::wait();
#pragma unroll
  for (int i = 0; i < kSteps * 2; ++i) x[i / 2].v[i % 2] = own[detail::place_of(i)];
}

}  // namespace tw
