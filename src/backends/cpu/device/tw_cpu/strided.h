// Accesses whose lanes are apart: strides, gathers, scatters, atomic additions.
#pragma once
#include "tw_cpu/masked.h"
#include "tw_cpu/zip.h"

namespace tw {

// Every stride-th element, lane by lane; of pairs by whole vectors.
template <class T>
TW_INLINE vec<T> load_strided(const T* at, i64 stride) {
  if (stride == 2) return every_other(load(at), load(at + TW_LANES - 1));
  vec<T> x;
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane) x[lane] = at[lane * stride];
  return x;
}
template <class T>
TW_INLINE vec<T> load_strided(const T* at, i64 stride, vmask mask, vec<T> fill) {
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (mask[lane]) fill[lane] = at[lane * stride];
  return fill;
}
template <class T>
TW_INLINE void store_strided(T* at, i64 stride, vec<T> x) {
  if (stride == 2) {
    const vmask first_of_pairs = (convert<vi32>(iota()) & 1) - 1;
    store(at, zip_first(x, x), first_of_pairs);
    store(at + TW_LANES, zip_second(x, x), first_of_pairs);
    return;
  }
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane) at[lane * stride] = x[lane];
}
template <class T>
TW_INLINE void store_strided(T* at, i64 stride, vec<T> x, vmask mask) {
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (mask[lane]) at[lane * stride] = x[lane];
}

// Elements at offsets from `at`, each lane its own.
template <class T>
TW_INLINE vec<T> gather(const T* at, vi64 offset) {
  vec<T> x;
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane) x[lane] = at[offset[lane]];
  return x;
}
template <class T>
TW_INLINE vec<T> gather(const T* at, vi64 offset, vmask mask, vec<T> fill) {
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (mask[lane]) fill[lane] = at[offset[lane]];
  return fill;
}
template <class T>
TW_INLINE void scatter(T* at, vi64 offset, vec<T> x, vmask mask) {
#pragma clang loop unroll(full)
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (mask[lane]) at[offset[lane]] = x[lane];
}
template <class T>
TW_INLINE void atomic_add(T* at, T x) {
  __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}
// Lanes may meet.
template <class T>
TW_INLINE void atomic_add(T* at, vi64 offset, vec<T> x, vmask mask) {
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (mask[lane]) atomic_add(at + offset[lane], x[lane]);
}

// A byte for each block of memory of kLockedBytes, which a thread that adds to the block sets meanwhile;
// blocks that are kLocks apart share one. They lie in cache lines of their own.
constexpr u64 kLocks = 256, kLockedBytes = 256;
struct alignas(64) TwLock {
  u8 taken;
};
static TwLock locks_of_blocks[kLocks];
TW_INLINE void take(TwLock& lock) {
  while (__atomic_exchange_n(&lock.taken, u8(1), __ATOMIC_ACQUIRE) != 0)
    while (__atomic_load_n(&lock.taken, __ATOMIC_RELAXED) != 0) __builtin_ia32_pause();
}
TW_INLINE void leave(TwLock& lock) { __atomic_store_n(&lock.taken, u8(0), __ATOMIC_RELEASE); }

// at[lane] += x[lane] where threads may add to the same elements: a tenth of the time of atomic additions.
// All that add to them meanwhile must do so.
template <class T>
static __attribute__((noinline)) void add_side_by_side(T* at, vec<T> x, vmask mask) {
  static_assert(TW_LANES * sizeof(T) <= kLockedBytes);  // two blocks at most
  if (!any(mask)) return;
  const u64 first = (u64)at / kLockedBytes % kLocks, last = (u64)(at + TW_LANES - 1) / kLockedBytes % kLocks;
  TwLock &low = locks_of_blocks[first < last ? first : last],
         &high = locks_of_blocks[first < last ? last : first];
  take(low);  // always the lower one first, so that no two threads wait for each other
  if (first != last) take(high);
  store(at, load(at, mask, vec<T>(0)) + x, mask);
  if (first != last) leave(high);
  leave(low);
}

// bool elements are bytes, 0 or 1.
TW_INLINE vmask load_bool_strided(const u8* at, i64 stride) { return ne(load_strided(at, stride), vu8(0)); }
TW_INLINE vmask load_bool_strided(const u8* at, i64 stride, vmask mask, vmask fill) {
  return ne(load_strided(at, stride, mask, convert<vu8>(fill)), vu8(0));
}
TW_INLINE void store_bool_strided(u8* at, i64 stride, vmask x) { store_strided(at, stride, bool_bytes(x)); }
TW_INLINE void store_bool_strided(u8* at, i64 stride, vmask x, vmask mask) {
  store_strided(at, stride, bool_bytes(x), mask);
}
TW_INLINE vmask gather_bool(const u8* at, vi64 offset) { return ne(gather(at, offset), vu8(0)); }
TW_INLINE vmask gather_bool(const u8* at, vi64 offset, vmask mask, vmask fill) {
  return ne(gather(at, offset, mask, convert<vu8>(fill)), vu8(0));
}
TW_INLINE void scatter_bool(u8* at, vi64 offset, vmask x, vmask mask) {
  scatter(at, offset, bool_bytes(x), mask);
}

}  // namespace tw
