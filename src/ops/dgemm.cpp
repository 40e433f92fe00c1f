// OpenBLAS is opened at run time: a GPU machine need not have it, and the bundle that travels there stays
// small.
#include "ops/dgemm.h"

#include <dlfcn.h>

#include <algorithm>

namespace tilewright::ops {

namespace {

// cblas_dgemm as OpenBLAS and every other CBLAS with 32-bit integers has it.
using CblasDgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                            const double* a, int lda, const double* b, int ldb, double beta, double* c,
                            int ldc);
constexpr int kRowMajor = 101, kNoTrans = 111;

CblasDgemm find_cblas() {
  for (const char* name : {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      if (void* symbol = dlsym(library, "cblas_dgemm")) return reinterpret_cast<CblasDgemm>(symbol);
  return nullptr;
}

// Row by row over blocks of k and n that stay in L1 and L2.
void plain(const double* a, const double* b, double* c, Index m, Index n, Index k) {
  constexpr Index kBlockK = 64, kBlockN = 512;
  std::fill(c, c + m * n, 0.0);
  for (Index p0 = 0; p0 < k; p0 += kBlockK)
    for (Index j0 = 0; j0 < n; j0 += kBlockN)
      for (Index i = 0; i < m; ++i)
        for (Index p = p0; p < std::min(p0 + kBlockK, k); ++p) {
          const double x = a[i * k + p];
          for (Index j = j0; j < std::min(j0 + kBlockN, n); ++j) c[i * n + j] += x * b[p * n + j];
        }
}

}  // namespace

void dgemm(const double* a, const double* b, double* c, Index m, Index n, Index k) {
  static const CblasDgemm cblas = find_cblas();
  if (!cblas) return plain(a, b, c, m, n, k);
  const auto rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  cblas(kRowMajor, kNoTrans, kNoTrans, rows, columns, inner, 1.0, a, inner, b, columns, 0.0, c, columns);
}

}  // namespace tilewright::ops
