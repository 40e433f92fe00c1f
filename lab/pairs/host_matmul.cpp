// The loops of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3),
// 2008): a block of b lies in the L2 in panels of as many columns as the registers take, a few rows of a in
// the L1, and each element that is read from there is multiplied with a whole row of registers.
#include "pairs/host_matmul.h"

#include <algorithm>
#include <cstring>

namespace tilewright::lab {

namespace {

// A panel of a is 16 KiB: with what streams past it, a third of an L1. The block of b is 768 KiB, most of an
// L2.
constexpr Index kBlockK = 256, kBlockN = 384;

// The rows and columns of c whose sums stay in registers.
struct Tile {
  Index rows, columns;
  // c (+)= a · b over a block's depth, of panels: a's `rows` elements of each depth beside each other, b's
  // `columns`.
  void (*multiply)(const double* a, const double* b, Index depth, double* c, Index ldc, bool add);
};

template <int kLanes, int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply(const double* a, const double* b, Index depth, double* c,
                                            Index ldc, bool add) {
  using Lanes [[gnu::vector_size(kLanes * sizeof(double))]] = double;
  Lanes sums[kRows][kVectors] = {};
  for (Index p = 0; p < depth; ++p, a += kRows, b += kLanes * kVectors) {
    Lanes row[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&row[v], b + v * kLanes, sizeof(Lanes));
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sums[i][v] += a[i] * row[v];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      double* to = c + i * ldc + v * kLanes;
      Lanes sum = sums[i][v];
      if (add) {
        Lanes before;
        std::memcpy(&before, to, sizeof(Lanes));
        sum += before;
      }
      std::memcpy(to, &sum, sizeof(Lanes));
    }
  }
}

void multiply_sse2(const double* a, const double* b, Index depth, double* c, Index ldc, bool add) {
  multiply<2, 4, 3>(a, b, depth, c, ldc, add);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void multiply_avx2(const double* a, const double* b, Index depth, double* c,
                                               Index ldc, bool add) {
  multiply<4, 4, 3>(a, b, depth, c, ldc, add);
}

[[gnu::target("avx512f")]] void multiply_avx512(const double* a, const double* b, Index depth, double* c,
                                                Index ldc, bool add) {
  multiply<8, 8, 3>(a, b, depth, c, ldc, add);
}
#endif

Tile tile_of_this_cpu([[maybe_unused]] int most_lanes) {
#if defined(__x86_64__)
  if (most_lanes >= 8 && __builtin_cpu_supports("avx512f")) return {8, 24, multiply_avx512};
  if (most_lanes >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {4, 12, multiply_avx2};
#endif
  return {4, 6, multiply_sse2};
}

// `lines` lines of `depth` elements as panels of `wide` lines, zeros after the last. An element's place in
// its line is `step` from the next one's, its line `stride` from the next.
struct Lines {
  const double* from;
  Index lines, depth, stride, step;
};
void pack(const Lines& x, Index wide, double* to) {
  for (Index first = 0; first < x.lines; first += wide) {
    const Index count = std::min(wide, x.lines - first);
    const double* from = x.from + first * x.stride;
    for (Index p = 0; p < x.depth; ++p, to += wide) {
      for (Index i = 0; i < count; ++i) to[i] = from[i * x.stride + p * x.step];
      std::fill(to + count, to + wide, 0.0);
    }
  }
}

// One tile of c; at its edges by way of a whole one.
void add_tile(const Tile& tile, const double* a, const double* b, Index depth, double* c, Index ldc,
              Index rows, Index columns, bool add) {
  if (rows == tile.rows && columns == tile.columns) return tile.multiply(a, b, depth, c, ldc, add);
  double whole[8 * 24];
  tile.multiply(a, b, depth, whole, tile.columns, false);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j)
      c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + whole[i * tile.columns + j];
  }
}

}  // namespace

void host_matmul(const HostMatmul& w, int most_lanes) {
  const Tile tile = tile_of_this_cpu(most_lanes);
  if (w.k == 0)
    for (Index i = 0; i < w.m; ++i) std::fill_n(w.c + i * w.ldc, w.n, 0.0);
  const Index deepest = std::min(kBlockK, w.k);
  HostArray a(static_cast<std::size_t>(tile.rows * deepest));
  HostArray b(
      static_cast<std::size_t>(ceil_div(std::min(kBlockN, w.n), tile.columns) * tile.columns * deepest));
  for (Index j = 0; j < w.n; j += kBlockN) {
    const Index n = std::min(kBlockN, w.n - j);
    for (Index p = 0; p < w.k; p += kBlockK) {
      const Index k = std::min(kBlockK, w.k - p);
      pack({w.b + p * w.ldb + j * w.b_step, n, k, w.b_step, w.ldb}, tile.columns, b.data());
      for (Index i = 0; i < w.m; i += tile.rows) {
        const Index rows = std::min(tile.rows, w.m - i);
        pack({w.a + i * w.lda + p * w.a_step, rows, k, w.lda, w.a_step}, tile.rows, a.data());
        for (Index c = 0; c < n; c += tile.columns)
          add_tile(tile, a.data(), b.data() + c * k, k, w.c + i * w.ldc + j + c, w.ldc, rows,
                   std::min(tile.columns, n - c), p > 0);
      }
    }
  }
}

void host_matmul(const HostMatmul& w, ThreadPool& pool) {
  if (w.m == 0 || w.n == 0 || w.k == 0) return host_matmul(w);  // of nothing, which has no address
  const bool by_rows = w.m >= w.n;
  pool.parallel_for(by_rows ? w.m : w.n, [&](Index begin, Index end, int) {
    HostMatmul part = w;
    (by_rows ? part.m : part.n) = end - begin;
    part.a += by_rows ? begin * w.lda : 0;
    part.b += by_rows ? 0 : begin * w.b_step;
    part.c += by_rows ? begin * w.ldc : begin;
    host_matmul(part);
  });
}

HostArray host_transpose(const double* a, Index rows, Index columns, Index stride) {
  HostArray t(static_cast<std::size_t>(rows * columns));
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) t[static_cast<std::size_t>(c * rows + r)] = a[r * stride + c];
  }
  return t;
}

}  // namespace tilewright::lab
