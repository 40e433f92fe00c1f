// What threads of a program tell each other when a tile is spread over them (layout.h has the picture):
// results of row and column reductions, scans. Partials of several reductions are put first and taken after
// one common barrier.
#pragma once

#include "tw_cuda/block.cuh"

namespace tw {

// The block's dynamic shared memory, for one step at a time, from `bytes` on.
template <class T>
TW_DEVICE T* shared_memory(int bytes = 0) {
  extern __shared__ uint4 tw_stage[];
  return reinterpret_cast<T*>(reinterpret_cast<char*>(tw_stage) + bytes);
}
// Who exchanges: all threads of the block, unless others stand beside them (pipeline.cuh).
struct UnmaskedBlock {
  static TW_DEVICE void wait() { __syncthreads(); }
};
// Registers of one value each, seen as vectors.
template <class T>
TW_DEVICE Vec<T, 1>* as_vectors(T* x) {
  return reinterpret_cast<Vec<T, 1>*>(x);
}

// ---- along a row
// ------------------------------------------------------------------------------------------------------ One
// value for each of this thread's rows, combined over the kLanes neighbouring lanes that share them.
template <class Op, int kLanes, class T, int kRows>
TW_DEVICE void reduce_lanes(T (&x)[kRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) x[r] = warp_reduce<Op, kLanes>(x[r]);
}
template <class Op, int kLanes, class T>
TW_DEVICE void reduce_lanes(T& x) {
  x = warp_reduce<Op, kLanes>(x);
}

// The first lane of each warp leaves its rows' partials; parts[r][w] is that of row r and of warp w of the
// row's warps.
template <class T, int kRows, int kParts>
TW_DEVICE void put_parts(T (&parts)[kRows][kParts], const T (&x)[kRows]) {
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) parts[r][threadIdx.x / 32 % kParts] = x[r];
  }
}
template <class T, int kParts>
TW_DEVICE void put_parts(T (&parts)[1][kParts], const T& x) {
  if (threadIdx.x % 32 == 0) parts[0][threadIdx.x / 32 % kParts] = x;
}

// All partials of a row combined, after the barrier; the same bits in every thread.
template <class Op, class T, int kParts>
TW_DEVICE T take_part(const T (&parts)[kParts]) {
  if constexpr (kParts <= 4) {
    T x = parts[0];
#pragma unroll
    for (int i = 1; i < kParts; ++i) x = Op::template combine<T>(x, parts[i]);
    return x;
  } else {
    constexpr int kLanes = detail::pow2_above<kParts>;
    T x = Op::template identity<T>();
#pragma unroll
    for (int i = 0; i < kParts; i += 32) {
      const int from = i + int(threadIdx.x) % kLanes;
      if (kParts % kLanes == 0 || from < kParts) x = Op::template combine<T>(x, parts[from]);
    }
    return warp_reduce<Op, kLanes>(x);
  }
}
template <class Op, class T, int kRows, int kParts>
TW_DEVICE void take_parts(T (&x)[kRows], const T (&parts)[kRows][kParts]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) x[r] = take_part<Op>(parts[r]);
}
template <class Op, class T, int kParts>
TW_DEVICE void take_parts(T& x, const T (&parts)[1][kParts]) {
  x = take_part<Op>(parts[0]);
}

// ---- along the columns
// ------------------------------------------------------------------------------------------------
// parts[0][i] becomes the combination of all parts[p][i]: kAll threads share the columns.
template <class Op, int kAll, class T, int kParts, int kCols>
TW_DEVICE void combine_columns(T (&parts)[kParts][kCols]) {
#pragma unroll 1
  for (int i = int(threadIdx.x) % kAll; i < kCols; i += kAll) {
    T sum = parts[0][i];
#pragma unroll
    for (int p = 1; p < kParts; ++p) sum = Op::template combine<T>(sum, parts[p][i]);
    parts[0][i] = sum;
  }
}
// A thread's vectors of a row of columns, which lie so that the threads of a warp stand side by side.
template <int kThreads, int kSteps, class T, int N>
TW_DEVICE void take_columns(Vec<T, N>* x, const T* row) {
  const int t = int(threadIdx.x) % kThreads;
#pragma unroll
  for (int c = 0; c < kSteps; ++c)
#pragma unroll
    for (int v = 0; v < N; ++v) x[c].v[v] = row[(c * N + v) * kThreads + t];
}

// Vectors of a thread's columns, combined over the row groups: kThreads threads a row, kGroups groups.
// `stage` holds kParts rows of the tile; every thread of those that exchange must call.
template <class Op, int kThreads, int kGroups, int kSteps, class Who = UnmaskedBlock, class T, int N>
TW_DEVICE void reduce_groups(Vec<T, N>* x, T* stage) {
  constexpr int kInWarp = kThreads < 32 ? (32 / kThreads < kGroups ? 32 / kThreads : kGroups) : 1;
  constexpr int kParts = kGroups / kInWarp;
  if constexpr (kInWarp > 1) {
#pragma unroll
    for (int c = 0; c < kSteps; ++c)
#pragma unroll
      for (int v = 0; v < N; ++v) x[c].v[v] = warp_reduce_strided<Op, kInWarp, kThreads>(x[c].v[v]);
  }
  if constexpr (kParts > 1) {
    constexpr int kCols = kThreads * kSteps * N;
    const int t = int(threadIdx.x) % kThreads, group = int(threadIdx.x) / kThreads % kGroups;
    Who::wait();  // whoever used the stage before is done
    if (group % kInWarp == 0) {
#pragma unroll
      for (int c = 0; c < kSteps; ++c)
#pragma unroll
        for (int v = 0; v < N; ++v) stage[group / kInWarp * kCols + (c * N + v) * kThreads + t] = x[c].v[v];
    }
    Who::wait();
    combine_columns<Op, kThreads * kGroups>(*reinterpret_cast<T(*)[kParts][kCols]>(stage));
    Who::wait();
    take_columns<kThreads, kSteps>(x, stage);
  }
}

template <class Op, int kThreads, int kGroups, class Who = UnmaskedBlock, class T>
TW_DEVICE void reduce_groups_one(T& x, T* stage) {
  Vec<T, 1> one[1] = {{{x}}};
  reduce_groups<Op, kThreads, kGroups, 1, Who>(one, stage);
  x = one[0].v[0];
}

// A running total of many steps. Of f32 sums with what its roundings lost (Knuth's TwoSum), so that the error
// of long ones does not grow with their length; where an infinity spoils that, the sum alone.
template <class Op, class T>
struct RunningTotal {
  T total = Op::template identity<T>();
  TW_DEVICE void take_in(T part) { total = Op::template combine<T>(total, part); }
  TW_DEVICE T value() const { return total; }
};
template <>
struct RunningTotal<Sum, float> {
  float total = 0.f, lost = 0.f;
  TW_DEVICE void take_in(float part) {
    const float sum = total + part, added = sum - total;
    lost += (total - (sum - added)) + (part - added);
    total = sum;
  }
  TW_DEVICE float value() const { return lost - lost == 0.f ? total + lost : total; }
};

// ---- scans
// ------------------------------------------------------------------------------------------------------------
// Partials in the order of their elements, combined from the first on: part i becomes the combination of
// parts 0 … i. All lanes of a warp call; they share the parts.
template <class Op, int kParts, class T>
TW_DEVICE void scan_parts(T* parts) {
  constexpr int kLanes = kParts >= 32 ? 32 : detail::pow2_above<kParts>;
  const int lane = int(threadIdx.x) % 32;
  T before = Op::template identity<T>();
#pragma unroll 1
  for (int first = 0; first < kParts; first += 32) {
    const int i = first + lane;
    T part = i < kParts ? parts[i] : Op::template identity<T>();
    part = warp_scan<Op, kLanes>(part);
    if constexpr (kParts > 32) {
      part = Op::template combine<T>(before, part);
      before = shuffle_from(part, 31);
    }
    if (i < kParts) parts[i] = part;
  }
}

// Inclusive scan along the columns of a thread's kRows rows of kSteps vectors. `stage` holds kSteps partials
// of each warp for each row.
template <class Op, int kThreads, int kRows, int kSteps, class T, int N>
TW_DEVICE void scan_columns(Vec<T, N>* x, T* stage) {
  constexpr int kWarps = kThreads <= 32 ? 1 : kThreads / 32;
  constexpr int kLanes = kThreads < 32 ? kThreads : 32;
  constexpr int kParts = kSteps * kWarps;  // of a row
  const int lane = int(threadIdx.x) % kLanes, warp = int(threadIdx.x) / 32 % kWarps;
  T* parts = stage + int(threadIdx.x) / kThreads * (kRows * kParts);
  T before[kRows * kSteps];  // of the lanes of this warp that come first
  T total[kRows * kSteps];   // of this warp
#pragma unroll
  for (int i = 0; i < kRows * kSteps; ++i) {
#pragma unroll
    for (int v = 1; v < N; ++v) x[i].v[v] = Op::template combine<T>(x[i].v[v - 1], x[i].v[v]);
    const T upto = warp_scan<Op, kLanes>(x[i].v[N - 1]);
    const T left = shuffle_up(upto, 1, kLanes);
    before[i] = lane == 0 ? Op::template identity<T>() : left;
    total[i] = shuffle_from(upto, kLanes - 1, kLanes);
  }
  if constexpr (kWarps > 1) {
    __syncthreads();  // whoever used the stage before is done
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < kRows * kSteps; ++i) parts[i * kWarps + warp] = total[i];
    }
    __syncthreads();
    // Each warp takes the rows whose number is its own.
    for (int r = warp; r < kRows; r += kWarps) scan_parts<Op, kParts>(parts + r * kParts);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    T start = Op::template identity<T>();
#pragma unroll
    for (int c = 0; c < kSteps; ++c) {
      const int i = r * kSteps + c;
      if constexpr (kWarps > 1) {
        const int part = c * kWarps + warp;
        start = part == 0 ? Op::template identity<T>() : parts[r * kParts + part - 1];
      }
      const T from = Op::template combine<T>(start, before[i]);
#pragma unroll
      for (int v = 0; v < N; ++v) x[i].v[v] = Op::template combine<T>(from, x[i].v[v]);
      if constexpr (kWarps == 1) start = Op::template combine<T>(start, total[i]);
    }
  }
}

// What comes before the runs of this thread's group, for each of its columns: the combination of what the
// groups of lower numbers have in x. kThreads threads a row, kGroups groups; `stage` holds kParts + 1 values
// of each column, where the kParts warps that share columns are several.
template <class Op, int kThreads, int kGroups, int kSteps, class T, int N>
TW_DEVICE void scan_groups(Vec<T, N>* x, T* stage) {
  constexpr int kInWarp = kThreads < 32 ? (32 / kThreads < kGroups ? 32 / kThreads : kGroups) : 1;
  constexpr int kParts = kGroups / kInWarp, kPitch = kParts + 1;
  constexpr int kCols = kThreads * kSteps * N;
  const int t = int(threadIdx.x) % kThreads, group = int(threadIdx.x) / kThreads;
  const int place = group % kInWarp, part = group / kInWarp;
  T own[kSteps * N];  // of the groups of this warp, up to this one
#pragma unroll
  for (int i = 0; i < kSteps * N; ++i) {
    T value = x[i / N].v[i % N];
#pragma unroll
    for (int distance = 1; distance < kInWarp; distance *= 2) {
      const T left = shuffle_up(value, distance * kThreads, kInWarp * kThreads);
      if (place >= distance) value = Op::template combine<T>(left, value);
    }
    own[i] = value;
    if constexpr (kInWarp > 1) {
      const T left = shuffle_up(value, kThreads, kInWarp * kThreads);
      x[i / N].v[i % N] = place == 0 ? Op::template identity<T>() : left;
    } else {
      x[i / N].v[i % N] = Op::template identity<T>();
    }
  }
  if constexpr (kParts > 1) {
    __syncthreads();  // whoever used the stage before is done
    if (place == kInWarp - 1) {
#pragma unroll
      for (int i = 0; i < kSteps * N; ++i) stage[(i * kThreads + t) * kPitch + part] = own[i];
    }
    __syncthreads();
    constexpr int kAllWarps = kThreads * kGroups / 32;
    constexpr bool kFew = kParts <= 4;
    if constexpr (!kFew) {
      for (int column = int(threadIdx.x) / 32; column < kCols; column += kAllWarps)
        scan_parts<Op, kParts>(stage + column * kPitch);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kSteps * N; ++i) {
      const T* column = stage + (i * kThreads + t) * kPitch;
      T before = Op::template identity<T>();
      if constexpr (kFew) {
#pragma unroll
        for (int p = 0; p < kParts - 1; ++p)
          if (p < part) before = Op::template combine<T>(before, column[p]);
      } else if (part > 0) {
        before = column[part - 1];
      }
      x[i / N].v[i % N] = Op::template combine<T>(before, x[i / N].v[i % N]);
    }
  }
}

// Inclusive scan along the rows, of which each group of threads holds kRows neighbours: of them first, then
// of what the groups come to. `stage` as above.
template <class Op, int kThreads, int kGroups, int kRows, int kSteps, class T, int N>
TW_DEVICE void scan_runs(Vec<T, N>* x, T* stage) {
#pragma unroll
  for (int i = kSteps; i < kRows * kSteps; ++i)
#pragma unroll
    for (int v = 0; v < N; ++v) x[i].v[v] = Op::template combine<T>(x[i - kSteps].v[v], x[i].v[v]);
  if constexpr (kGroups > 1) {
    Vec<T, N> before[kSteps];
#pragma unroll
    for (int c = 0; c < kSteps; ++c) before[c] = x[(kRows - 1) * kSteps + c];
    scan_groups<Op, kThreads, kGroups, kSteps>(before, stage);
#pragma unroll
    for (int i = 0; i < kRows * kSteps; ++i)
#pragma unroll
      for (int v = 0; v < N; ++v) x[i].v[v] = Op::template combine<T>(before[i % kSteps].v[v], x[i].v[v]);
  }
}

// Inclusive scan along the rows, kGroups groups apart in the thread order. `stage` holds one vector of every
// thread.
template <class Op, int kThreads, int kGroups, int kRows, int kSteps, class T, int N>
TW_DEVICE void scan_rows(Vec<T, N>* x, T* stage) {
  const int t = int(threadIdx.x) % kThreads, group = int(threadIdx.x) / kThreads;
#pragma unroll
  for (int c = 0; c < kSteps; ++c) {
    RunningTotal<Op, T> running[N];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Vec<T, N>& mine = x[r * kSteps + c];
      if constexpr (kGroups > 1) {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < N; ++v) stage[(group * N + v) * kThreads + t] = mine.v[v];
        __syncthreads();
      }
#pragma unroll
      for (int v = 0; v < N; ++v) {
        if constexpr (kGroups > 1) {
#pragma unroll 4
          for (int g = 0; g < kGroups; ++g) {
            running[v].take_in(stage[(g * N + v) * kThreads + t]);
            if (g == group) mine.v[v] = running[v].value();
          }
        } else {
          running[v].take_in(mine.v[v]);
          mine.v[v] = running[v].value();
        }
      }
    }
  }
}

}  // namespace tw
