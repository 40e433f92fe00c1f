// Four rows at a time over blocks of b that stay in the cache.
#include "pairs/host_matmul.h"

#include <algorithm>

namespace tilewright::lab {

namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TW_FOR_THIS_CPU __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3")))
#else
#define TW_FOR_THIS_CPU
#endif

constexpr Index kBlockK = 128, kBlockN = 256;  // 256 KiB of b: half of an L2

// c[0..4) += a[0..4) · b over one block.
TW_FOR_THIS_CPU void four_rows(const double* __restrict a, Index lda, const double* __restrict b, Index ldb,
                               double* __restrict c, Index ldc, Index k, Index n) {
  for (Index p = 0; p < k; ++p) {
    const double a0 = a[p], a1 = a[lda + p], a2 = a[2 * lda + p], a3 = a[3 * lda + p];
    const double* __restrict row = b + p * ldb;
    for (Index j = 0; j < n; ++j) {
      c[j] += a0 * row[j];
      c[ldc + j] += a1 * row[j];
      c[2 * ldc + j] += a2 * row[j];
      c[3 * ldc + j] += a3 * row[j];
    }
  }
}

TW_FOR_THIS_CPU void one_row(const double* __restrict a, const double* __restrict b, Index ldb,
                             double* __restrict c, Index k, Index n) {
  for (Index p = 0; p < k; ++p) {
    const double a0 = a[p];
    const double* __restrict row = b + p * ldb;
    for (Index j = 0; j < n; ++j) c[j] += a0 * row[j];
  }
}

}  // namespace

void host_matmul(const HostMatmul& w) {
  for (Index i = 0; i < w.m; ++i) std::fill_n(w.c + i * w.ldc, w.n, 0.0);
  for (Index j = 0; j < w.n; j += kBlockN) {
    const Index n = std::min(kBlockN, w.n - j);
    for (Index p = 0; p < w.k; p += kBlockK) {
      const Index k = std::min(kBlockK, w.k - p);
      const double* b = w.b + p * w.ldb + j;
      Index i = 0;
      for (; i + 4 <= w.m; i += 4)
        four_rows(w.a + i * w.lda + p, w.lda, b, w.ldb, w.c + i * w.ldc + j, w.ldc, k, n);
      for (; i < w.m; ++i) one_row(w.a + i * w.lda + p, b, w.ldb, w.c + i * w.ldc + j, k, n);
    }
  }
}

void host_matmul(const HostMatmul& w, ThreadPool& pool) {
  pool.parallel_for(w.m, [&](Index begin, Index end, int) {
    HostMatmul part = w;
    part.a += begin * w.lda;
    part.c += begin * w.ldc;
    part.m = end - begin;
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
