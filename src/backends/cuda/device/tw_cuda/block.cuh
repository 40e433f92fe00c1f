// Reductions among the threads of a block, or of equal groups of its warps (several rows a block), through
// shared memory. Blocks are one-dimensional: threadIdx.x counts the threads.
#pragma once

#include "tw_cuda/warp.cuh"

namespace tw {

// Room for one partial of each warp of the largest block, twice: consecutive reductions alternate between the
// halves, so that each needs one barrier only.
template <class T>
struct BlockScratch {
  T partial[2][32];
};

namespace detail {
template <int kWarps>
inline constexpr int pow2_above = kWarps <= 1    ? 1
                                  : kWarps <= 2  ? 2
                                  : kWarps <= 4  ? 4
                                  : kWarps <= 8  ? 8
                                  : kWarps <= 16 ? 16
                                                 : 32;
}

// Every thread gets the result of its group of kThreads neighbouring threads: a power of two below a warp, or
// a multiple of 32 that divides the block. All threads of the block must call. `step` counts the reductions
// through `scratch` so far: neighbours in time must differ in parity. The order of combination depends on
// thread numbers only.
template <class Op, int kThreads, class T>
TW_DEVICE T block_reduce(T value, BlockScratch<T>& scratch, int step) {
  if constexpr (kThreads <= 32) {
    return warp_reduce<Op, kThreads>(value);
  } else {
    static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a group is whole warps");
    constexpr int kWarps = kThreads / 32;
    constexpr int kLanes = detail::pow2_above<kWarps>;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T* partial = scratch.partial[step & 1];
    value = warp_reduce<Op>(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    const u32 from = lane % kLanes;
    value = Op::template identity<T>();
    if (kWarps == kLanes || from < kWarps) value = partial[warp / kWarps * kWarps + from];
    return warp_reduce<Op, kLanes>(value);
  }
}

// Thread i of each group of kThreads gets the combination of threads 0 … i; `total` that of the whole group.
// Scratch and `step` as above.
template <class Op, int kThreads, class T>
TW_DEVICE T block_scan(T value, BlockScratch<T>& scratch, int step, T& total) {
  if constexpr (kThreads <= 32) {
    value = warp_scan<Op, kThreads>(value);
    total = shuffle_from(value, kThreads - 1, kThreads);
    return value;
  } else {
    static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a group is whole warps");
    constexpr int kWarps = kThreads / 32;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T* partial = scratch.partial[step & 1];
    value = warp_scan<Op>(value);
    if (lane == 31) partial[warp] = value;
    __syncthreads();
    const u32 first = warp / kWarps * kWarps;
    T sums = Op::template identity<T>();
    if (lane < kWarps) sums = partial[first + lane];
    sums = warp_scan<Op>(sums);
    total = shuffle_from(sums, kWarps - 1);
    const T before = shuffle_from(sums, (warp - first + 31) & 31);  // of the warps before this one
    return warp == first ? value : Op::template combine<T>(before, value);
  }
}

}  // namespace tw
