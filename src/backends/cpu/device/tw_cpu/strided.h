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
