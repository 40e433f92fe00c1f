// Packing: blocks of a dot's operands become words in the order in which dot.h reads them.
#pragma once
#include "tw_cpu/dot_element.h"
#include "tw_cpu/relayout.h"

namespace tw {

// A block of an operand in memory: `outer` counts rows of a or columns of b, `inner` what is summed over.
// What lies behind these counts reads as zero.
template <class E>
struct DotOperand {
  typedef typename E::stored stored;
  typedef typename E::word word;
  const stored* at;
  i64 outer_stride, inner_stride;
  i64 outer, inner;

  // LANES words of one outer index; fast for neighbours in memory. `Whole`: they are, and all of them exist.
  template <bool Whole = false>
  inline __attribute__((always_inline)) vec<word> along(i64 o, i64 step) const {
    if (Whole || (inner_stride == 1 && o < outer && (step + TW_LANES) * E::kDepth <= inner))
      return E::words(at + o * outer_stride + step * E::kDepth);
    stored edge[TW_LANES * E::kDepth];
    const i64 i = step * E::kDepth;
    copy_edge(edge, at + o * outer_stride + i * inner_stride, inner_stride, o < outer ? inner - i : 0);
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
    stored edge[TW_LANES];
    copy_apart(edge, at + o * outer_stride + i * inner_stride, outer_stride, i < inner ? outer - o : 0);
    return E::place(load(edge), d);
  }
  // The first `there` of them, `stride` apart, and zeros. No members: a block whose address is taken stays in
  // memory, and every load of a loop asks anew how far it reaches.
  __attribute__((noinline)) static void copy_edge(stored* edge, const stored* from, i64 stride, i64 there) {
    for (int n = 0; n < TW_LANES * E::kDepth; ++n) edge[n] = n < there ? from[n * stride] : stored(0);
  }
  __attribute__((noinline)) static void copy_apart(stored* edge, const stored* from, i64 stride, i64 there) {
    for (int n = 0; n < TW_LANES; ++n) edge[n] = n < there ? from[n * stride] : stored(0);
  }
};

// A panel of b: `Width` columns from column n on, all their words of one step side by side, step after step.
template <class E, int Width, bool Whole>
static void pack_right_across(const DotOperand<E>& b, i64 n, i64 step, i64 steps, typename E::word* to) {
  for (; step < steps; ++step)
#pragma clang loop unroll(full)
    for (int v = 0; v < Width; v += TW_LANES)
      store(to + step * Width + v, b.template across<Whole>(n + v, step));
}
template <class E, int Width, bool Whole>
static void pack_right_along(const DotOperand<E>& b, i64 n, i64 step, i64 steps, typename E::word* to) {
  for (; step < steps; step += TW_LANES)
    for (int v = 0; v < Width; v += TW_LANES) {
      vec<typename E::word> words[TW_LANES];
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) words[i] = b.template along<Whole>(n + v + i, step);
      transpose_lanes(words);
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) store(to + (step + i) * Width + v, words[i]);
    }
}
// `steps` may be more than b has: what is missing is zero.
template <class E, int Width>
static void pack_right(const DotOperand<E>& b, i64 n, i64 steps, typename E::word* to) {
  const bool columns = n + Width <= b.outer;
  const i64 there = b.inner / E::kDepth < steps ? b.inner / E::kDepth : steps;
  if (b.inner_stride != 1) {
    const i64 whole = columns && b.outer_stride == 1 ? there : 0;
    pack_right_across<E, Width, true>(b, n, 0, whole, to);
    const i64 last = (b.inner + E::kDepth - 1) / E::kDepth, some = last < steps ? last : steps;
    pack_right_across<E, Width, false>(b, n, whole, some, to);
    for (i64 i = some * Width; i < steps * Width; i += TW_LANES) store(to + i, vec<typename E::word>(0));
    return;
  }
  const i64 whole = columns ? there / TW_LANES * TW_LANES : 0;
  pack_right_along<E, Width, true>(b, n, 0, whole, to);
  pack_right_along<E, Width, false>(b, n, whole, steps, to);
}

// Rows m … m + Rows of a, those that exist: the words of each one after another, `Stride` from row to row.
template <class E, int Rows, int Stride>
static void pack_left(const DotOperand<E>& a, i64 m, i64 steps, typename E::word* to) {
  if (a.inner_stride == 1) {
    for (i64 r = 0; r < Rows && m + r < a.outer; ++r)
      for (i64 step = 0; step < steps; step += TW_LANES)
        store(to + r * Stride + step, E::left(a.along(m + r, step)));
    return;
  }
  for (i64 r = 0; r < Rows && m + r < a.outer; r += TW_LANES)
    for (i64 step = 0; step < steps; step += TW_LANES) {
      vec<typename E::word> words[TW_LANES];
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) words[i] = E::left(a.across(m + r, step + i));
      transpose_lanes(words);
#pragma clang loop unroll(full)
      for (int i = 0; i < TW_LANES; ++i) store(to + (r + i) * Stride + step, words[i]);
    }
}

}  // namespace tw
