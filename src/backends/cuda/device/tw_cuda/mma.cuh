// The product of a warp on tensor cores: mma.sync (sm_80), 16 by 8 by 32 bytes of k.
#pragma once

#include "tw_cuda/convert.cuh"

namespace tw {

// Rows 0 to 7 in `upper`, 8 to 15 in `lower`: as wgmma leaves them, too.
template <class T>
TW_DEVICE void mma(Vec<f32, 2>& upper, Vec<f32, 2>& lower, const Vec<u32, 4>& a, u32 b0, u32 b1) {
  if constexpr (same<T, bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(upper.v[0]), "+f"(upper.v[1]), "+f"(lower.v[0]), "+f"(lower.v[1])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
  } else if constexpr (same<T, f32>) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(upper.v[0]), "+f"(upper.v[1]), "+f"(lower.v[0]), "+f"(lower.v[1])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(upper.v[0]), "+f"(upper.v[1]), "+f"(lower.v[0]), "+f"(lower.v[1])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace tw
