// Packing: blocks of a dot's operands become words in the order in which dot.h reads them.
#pragma once
#include "tw_cpu/dot_element.h"
#include "tw_cpu/masked.h"
#include "tw_cpu/relayout.h"

namespace tw {

// Whether elements that are neighbours along the inner dimension are neighbours in memory: asked of the
// stride, or known of it.
enum class Neighbours { asked, together, apart };

// Elements of `N`, `there` of them `stride` apart, and zeros. No member of DotOperand: a block whose address
// is taken stays in memory, and every load of a loop asks anew how far it reaches.
template <int N, class Stored>
static __attribute__((noinline)) void copy_edge(Stored* edge, const Stored* from, i64 stride, i64 there) {
#ifdef TW_AVX512
  constexpr bool kMasked = true;
  // One store as large as the load that follows: the load would wait until two smaller ones left the core.
  if constexpr (N * sizeof(Stored) == 64)
    if (stride == 1) {
      const i64 bytes = limit(there, N) * (i64)sizeof(Stored);
      typedef char Bytes __attribute__((vector_size(64)));
      const Bytes loaded = (Bytes)__builtin_ia32_loaddquqi512_mask(
          (const Bytes*)from, Bytes{}, bytes == 64 ? ~u64(0) : (u64(1) << bytes) - 1);
      *(Bytes*)edge = loaded;
      return;
    }
#else
  constexpr bool kMasked = sizeof(Stored) >= 4;  // narrower elements are loaded one by one under a mask
#endif
  if (kMasked && stride == 1) {
#pragma clang loop unroll(full)
    for (int n = 0; n < N; n += TW_LANES)
      store(edge + n, load(from + n, lanes_below(there - n), vec<Stored>(0)));
    return;
  }
#pragma clang loop unroll(full)
  for (int n = 0; n < N; n += TW_LANES) store(edge + n, vec<Stored>(0));
  for (int n = 0; n < N && n < there; ++n) edge[n] = from[n * stride];
}

// A block of an operand in memory: `outer` counts rows of a or columns of b, `inner` what is summed over.
// What lies behind these counts reads as zero. `Inner` and `Outer` say what is known when it is compiled, so
// that nothing is compiled for other blocks: of the inner stride, and the count `outer`, 0 where it is asked.
template <class E, Neighbours Inner = Neighbours::asked, int Outer = 0>
struct DotOperand {
  typedef E element;
  static constexpr Neighbours kInner = Inner;
  static constexpr int kOuter = Outer;
  typedef typename E::stored stored;
  typedef typename E::word word;
  const stored* at;
  i64 outer_stride, inner_stride;
  i64 outer, inner;

  inline __attribute__((always_inline)) bool together() const {
    return Inner == Neighbours::together || (Inner == Neighbours::asked && inner_stride == 1);
  }
  // LANES words of one outer index; fast for neighbours in memory. `Whole`: they are, and all of them exist.
  template <bool Whole = false>
  inline __attribute__((always_inline)) vec<word> along(i64 o, i64 step) const {
    if (Whole || (together() && o < outer && (step + TW_LANES) * E::kDepth <= inner))
      return E::words(at + o * outer_stride + step * E::kDepth);
    alignas(64) stored edge[TW_LANES * E::kDepth];
    const i64 i = step * E::kDepth;
    copy_edge<TW_LANES * E::kDepth>(edge, at + o * outer_stride + i * inner_stride, inner_stride,
                                    o < outer ? inner - i : 0);
    return E::words(edge);
  }
  // Asks for what along() will read, to L2: rows are too short for the hardware to see them coming.
  inline __attribute__((always_inline)) void prefetch_along(i64 o, i64 step) const {
    __builtin_prefetch(at + o * outer_stride + step * E::kDepth * inner_stride, 0, 2);
  }
  // The words of one step for LANES outer indices; likewise.
  template <bool Whole = false>
  inline __attribute__((always_inline)) vec<word> across(i64 o, i64 step) const {
    vec<word> result = element_across<Whole>(o, step, 0);
    if constexpr (E::kDepth > 1) {
#pragma clang loop unroll(full)
      for (int d = 1; d < E::kDepth; ++d) result |= element_across<Whole>(o, step, d);
    }
    return result;
  }

 private:
  template <bool Whole>
  inline __attribute__((always_inline)) vec<word> element_across(i64 o, i64 step, int d) const {
    const i64 i = step * E::kDepth + d;
    if (Whole || (outer_stride == 1 && o + TW_LANES <= outer && i < inner))
      return E::place(load(at + o + i * inner_stride), d);
    alignas(64) stored edge[TW_LANES];
    copy_edge<TW_LANES>(edge, at + o * outer_stride + i * inner_stride, outer_stride,
                        i < inner ? outer - o : 0);
    return E::place(load(edge), d);
  }
};

// A panel of b: `Width` columns from column n on, all their words of one step side by side, step after step.
template <int Width, bool Whole, class B>
static void pack_right_across(const B& b, i64 n, i64 step, i64 steps, typename B::word* to) {
  for (; step < steps; ++step)
#pragma clang loop unroll(full)
    for (int v = 0; v < Width; v += TW_LANES)
      store(to + step * Width + v, b.template across<Whole>(n + v, step));
}
template <int Width, bool Whole, class B>
static void pack_right_along(const B& b, i64 n, i64 step, i64 steps, typename B::word* to) {
  for (; step < steps; step += TW_LANES)
    for (int v = 0; v < Width; v += TW_LANES) {
      vec<typename B::word> words[TW_LANES];
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) words[i] = b.template along<Whole>(n + v + i, step);
      transpose_lanes(words);
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) store(to + (step + i) * Width + v, words[i]);
    }
}
// `steps` may be more than b has: what is missing is zero.
template <int Width, class B>
static void pack_right(const B& b, i64 n, i64 steps, typename B::word* to) {
  typedef typename B::element E;
  typedef typename B::word word;
  const bool columns = B::kOuter > 0 && B::kOuter % Width == 0 ? true : n + Width <= b.outer;
  const i64 there = b.inner / E::kDepth < steps ? b.inner / E::kDepth : steps;
  if constexpr (B::kInner != Neighbours::together)
    if (!b.together()) {
      const i64 whole = columns && b.outer_stride == 1 ? there : 0;
      pack_right_across<Width, true>(b, n, 0, whole, to);
      const i64 last = (b.inner + E::kDepth - 1) / E::kDepth, some = last < steps ? last : steps;
      pack_right_across<Width, false>(b, n, whole, some, to);
      for (i64 i = some * Width; i < steps * Width; i += TW_LANES) store(to + i, vec<word>(0));
      return;
    }
  if constexpr (B::kInner != Neighbours::apart) {
    const i64 whole = columns ? there / TW_LANES * TW_LANES : 0;
    pack_right_along<Width, true>(b, n, 0, whole, to);
    pack_right_along<Width, false>(b, n, whole, steps, to);
  }
}

// Rows m … m + Rows of a, those that exist: the words of each one after another, `Stride` from row to row.
template <int Rows, int Stride, class A>
static void pack_left(const A& a, i64 m, i64 steps, typename A::word* to) {
  typedef typename A::element E;
  if constexpr (A::kInner != Neighbours::apart)
    if (a.together()) {
      for (i64 r = 0; r < Rows && m + r < a.outer; ++r)
        for (i64 step = 0; step < steps; step += TW_LANES)
          store(to + r * Stride + step, E::left(a.along(m + r, step)));
      return;
    }
  if constexpr (A::kInner != Neighbours::together)
    for (i64 r = 0; r < Rows && m + r < a.outer; r += TW_LANES)
      for (i64 step = 0; step < steps; step += TW_LANES) {
        vec<typename A::word> words[TW_LANES];
#pragma clang loop unroll(full)
        for (int i = 0; i < TW_LANES; ++i) words[i] = E::left(a.across(m + r, step + i));
        transpose_lanes(words);
#pragma clang loop unroll(full)
        for (int i = 0; i < TW_LANES; ++i) store(to + (r + i) * Stride + step, words[i]);
      }
}

}  // namespace tw
