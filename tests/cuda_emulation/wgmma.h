// Stands in for the device header tw_cuda/wgmma.cuh: the same functions, whose work happens when it is waited
// for (machine_tensor.cpp).
#pragma once

#include "tw_cuda/block_layout.cuh"

extern "C" {
void emu_wgmma(void* acc, int columns, unsigned long long a, unsigned long long b, int add, int a_mn,
               int b_mn, int a_type, int b_type);
void emu_wgmma_parts(float* acc, int columns, const unsigned* const* parts, unsigned long long b, int add,
                     int b_mn, int a_type, int b_type);
void emu_wgmma_commit();
void emu_wgmma_wait(int pending);
}

namespace tw {

// EmulatedType of machine.h
template <class T>
inline constexpr int emu_type = same<T, f16>      ? 0
                                : same<T, bf16>   ? 1
                                : same<T, f8e4m3> ? 2
                                : same<T, f8e5m2> ? 3
                                : same<T, i8>     ? 4
                                                  : 5;

template <int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<f32, 2> (&)[kRows][kCols]) {}
template <int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<i32, 2> (&)[kRows][kCols]) {}
template <class T, int kRows, int kCols>
TW_DEVICE void wgmma_pin(Vec<T, 2> (&)[kRows][kCols]) {}
TW_DEVICE void wgmma_pin(f32&) {}
TW_DEVICE void wgmma_pin(u32&) {}
template <int kRows>
TW_DEVICE void wgmma_pin(f32 (&)[kRows]) {}
TW_DEVICE void wgmma_fence() {}
TW_DEVICE void wgmma_commit() { emu_wgmma_commit(); }
template <int kPending>
TW_DEVICE void wgmma_wait() {
  emu_wgmma_wait(kPending);
}
template <int kRegisters>
TW_DEVICE void registers_up() {}
template <int kRegisters>
TW_DEVICE void registers_down() {}

template <class A, class B, Major kA, Major kB, class Sum, int kCols>
TW_DEVICE void wgmma(Vec<Sum, 2> (*acc)[kCols], u64 a, u64 b, bool add) {
  emu_wgmma(&acc[0][0].v[0], 8 * kCols, a, b, add, int(kA), int(kB), emu_type<A>, emu_type<B>);
}
template <class T, Major kB, int kAcross, int kCols>
TW_DEVICE void wgmma_parts(Vec<f32, 2> (*acc)[kCols], const Vec<T, 2> (*a)[kAcross], int step, u64 b,
                           bool add) {
  const unsigned* const parts[4] = {reinterpret_cast<const unsigned*>(&a[0][2 * step]),
                                    reinterpret_cast<const unsigned*>(&a[1][2 * step]),
                                    reinterpret_cast<const unsigned*>(&a[0][2 * step + 1]),
                                    reinterpret_cast<const unsigned*>(&a[1][2 * step + 1])};
  emu_wgmma_parts(&acc[0][0].v[0], 8 * kCols, parts, b, add, int(kB), emu_type<T>, emu_type<T>);
}
template <class A, class B, int kCols>
TW_DEVICE void wgmma_bytes(Vec<f32, 2> (*acc)[kCols], const u32 (&a)[4], u64 b, bool add) {
  const unsigned* const parts[4] = {&a[0], &a[1], &a[2], &a[3]};
  emu_wgmma_parts(&acc[0][0].v[0], 8 * kCols, parts, b, add, 0, emu_type<A>, emu_type<B>);
}

}  // namespace tw
