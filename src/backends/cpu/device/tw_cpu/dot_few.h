// dot where one operand has only a few rows (or columns): the other one is read once, where it stands in
// memory, which takes longer than to multiply it.
#pragma once
#include "tw_cpu/dot_pack.h"
#include "tw_cpu/reduce.h"

namespace tw {

// Rows of the large operand in flight: enough independent sums, and streams that the prefetchers follow.
constexpr int kFewRows = 4;
// Rows of the small one that share what is read: their sums with each row in flight fit the registers.
constexpr int kFewAtOnce = TW_LANES == 16 ? 5 : 2;

// c[f][o] += Σ few[f] · large[o] for kFewRows rows of the large operand, whose inner elements are neighbours.
template <int Few, i64 FewStride, i64 LargeStride, class B>
TW_INLINE void dot_few_along(const typename B::word* few, i64 stride, const B& large, i64 o, i64 steps,
                             typename B::element::sum* c) {
  typedef typename B::element E;
  constexpr int kHere = Few < kFewAtOnce ? Few : kFewAtOnce;
  vec<typename E::sum> sum[kHere][kFewRows] = {};
  for (i64 k = 0; k < steps; k += TW_LANES)
#pragma clang loop unroll(full)
    for (int i = 0; i < kFewRows; ++i) {
      const vec<typename E::word> words = large.along(o + i, k);
      large.prefetch_along(o + i + kFewRows, k);
#pragma clang loop unroll(full)
      for (int f = 0; f < kHere; ++f) {
        sum[f][i] = E::add(sum[f][i], load(few + f * stride + k), words);
        if constexpr (E::kCorrects) sum[f][i] -= E::add(vi32(0), vu32(E::kCorrection), words);
      }
    }
#pragma clang loop unroll(full)
  for (int i = 0; i < kFewRows; ++i)
    if (o + i < large.outer)
      for (int f = 0; f < kHere; ++f) c[f * FewStride + (o + i) * LargeStride] += reduce_sum(sum[f][i]);
  if constexpr (Few > kHere)
    dot_few_along<Few - kHere, FewStride, LargeStride>(few + kHere * stride, stride, large, o, steps,
                                                       c + kHere * FewStride);
}

// c[f][o …] += Σ few[f] · large[o …] for neighbouring rows of the large operand, each word of which is read
// once.
template <int Few, i64 FewStride, class B>
TW_INLINE void dot_few_across(const typename B::word* few, i64 stride, const B& large, i64 o, i64 steps,
                              typename B::element::sum* c) {
  typedef typename B::element E;
  vec<typename E::sum> sum[Few];
#pragma clang loop unroll(full)
  for (int f = 0; f < Few; ++f) sum[f] = load(c + f * FewStride + o);
  for (i64 k = 0; k < steps; ++k) {
    const vec<typename E::word> words = large.across(o, k);
#pragma clang loop unroll(full)
    for (int f = 0; f < Few; ++f) {
      sum[f] = E::add(sum[f], vec<typename E::word>(few[f * stride + k]), words);
      if constexpr (E::kCorrects) sum[f] -= E::add(vi32(0), vu32(E::kCorrection), words);
    }
  }
#pragma clang loop unroll(full)
  for (int f = 0; f < Few; ++f) store(c + f * FewStride + o, sum[f]);
}

// c[f * FewStride + o * LargeStride] += Σ few[f] · large[o]; rows of c have room for whole vectors where
// LargeStride is 1. `few` may be stored in another type of the same words.
template <int Few, int Depth, i64 FewStride, i64 LargeStride, class A, class B>
static void dot_few(const A& few, const B& large, typename B::element::sum* c) {
  typedef typename B::element E;
  constexpr i64 kStride = (Depth / E::kDepth / TW_LANES + 2) * TW_LANES;
  constexpr i64 kRows = (Few + TW_LANES - 1) / TW_LANES * TW_LANES;  // packed in whole vectors if transposed
  alignas(64) typename E::word words[kRows * kStride];
  // Rows of few that do not exist are zeros, as they would be packed: their sums stay what they are.
  typename E::word zero = 0;
  if constexpr (E::kCorrects) zero = E::kCorrection;
  for (i64 missing = few.outer * kStride; missing < Few * kStride; ++missing) words[missing] = zero;
  const i64 inner = few.inner > large.inner ? few.inner : large.inner;
  const i64 steps = (inner + E::kDepth - 1) / E::kDepth;
  pack_left<Few, kStride>(few, 0, steps, words);
  constexpr bool kNeverAcross = B::kInner == Neighbours::together || LargeStride != 1;
  constexpr bool kAlwaysAcross = B::kInner == Neighbours::apart && LargeStride == 1;
  if constexpr (!kNeverAcross)
    if (!large.together()) {
      for (i64 o = 0; o < large.outer; o += TW_LANES)
        dot_few_across<Few, FewStride>(words, kStride, large, o, steps, c);
      return;
    }
  if constexpr (!kAlwaysAcross)
    for (i64 o = 0; o < large.outer; o += kFewRows)
      dot_few_along<Few, FewStride, LargeStride>(words, kStride, large, o, steps, c);
}

}  // namespace tw
