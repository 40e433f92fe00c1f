// The part of cuBLASLt's C API that we use, declared here so that no CUDA is needed to build. Names, values
// and layouts are those of cublasLt.h; cublaslt_api_test.cpp compares them with it where that file exists.
#pragma once

#include "backends/cuda/host/driver_api.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::cuda::api {

using cublasStatus = int;
inline constexpr cublasStatus kCublasSuccess = 0;
inline constexpr cublasStatus kCublasNotSupported = 15;

// Opaque: handles and descriptors are addresses that the library makes.
using cublasLtHandle = struct CublasLtContext*;
using cublasLtMatmulDesc = struct CublasLtMatmulDescOpaque*;
using cublasLtMatrixLayout = struct CublasLtMatrixLayoutOpaque*;
using cublasLtMatmulPreference = struct CublasLtMatmulPreferenceOpaque*;

struct CublasLtMatmulAlgo {
  std::uint64_t data[8];
};
struct CublasLtMatmulHeuristicResult {
  CublasLtMatmulAlgo algo;
  std::size_t workspace_bytes;
  cublasStatus state;
  float waves;
  int reserved[4];
};

// cudaDataType
inline constexpr int kCudaR32F = 0, kCudaR64F = 1, kCudaR16F = 2, kCudaR16BF = 14;
// cublasComputeType_t
inline constexpr int kCompute32F = 68, kCompute64F = 70, kCompute32FFastTf32 = 77;
// cublasOperation_t
inline constexpr int kOpN = 0, kOpT = 1;
// cublasLtMatmulDescAttributes_t
inline constexpr int kMatmulDescTransA = 3, kMatmulDescTransB = 4;
// cublasLtMatrixLayoutAttribute_t
inline constexpr int kLayoutBatchCount = 5, kLayoutStridedBatchOffset = 6;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kPreferenceMaxWorkspaceBytes = 1, kPreferenceReductionSchemeMask = 3,
                     kPreferenceMinAlignmentA = 5, kPreferenceMinAlignmentB = 6, kPreferenceMinAlignmentC = 7,
                     kPreferenceMinAlignmentD = 8;
// cublasLtReductionScheme_t: of sums that several blocks take parts of
inline constexpr std::uint32_t kReductionInPlace = 1, kReductionComputeType = 2;

// Functions of libcublasLt, called as NVIDIA's without "cublasLt".
struct CublasLt {
  std::size_t (*get_version)() = nullptr;
  const char* (*get_status_string)(cublasStatus status) = nullptr;
  cublasStatus (*create)(cublasLtHandle* handle) = nullptr;
  cublasStatus (*destroy)(cublasLtHandle handle) = nullptr;
  cublasStatus (*matmul_desc_create)(cublasLtMatmulDesc* desc, int compute_type, int scale_type) = nullptr;
  cublasStatus (*matmul_desc_destroy)(cublasLtMatmulDesc desc) = nullptr;
  cublasStatus (*matmul_desc_set_attribute)(cublasLtMatmulDesc desc, int attribute, const void* value,
                                            std::size_t bytes) = nullptr;
  cublasStatus (*matrix_layout_create)(cublasLtMatrixLayout* layout, int type, std::uint64_t rows,
                                       std::uint64_t columns, std::int64_t leading_dimension) = nullptr;
  cublasStatus (*matrix_layout_destroy)(cublasLtMatrixLayout layout) = nullptr;
  cublasStatus (*matrix_layout_set_attribute)(cublasLtMatrixLayout layout, int attribute, const void* value,
                                              std::size_t bytes) = nullptr;
  cublasStatus (*matmul_preference_create)(cublasLtMatmulPreference* preference) = nullptr;
  cublasStatus (*matmul_preference_destroy)(cublasLtMatmulPreference preference) = nullptr;
  cublasStatus (*matmul_preference_set_attribute)(cublasLtMatmulPreference preference, int attribute,
                                                  const void* value, std::size_t bytes) = nullptr;
  cublasStatus (*matmul_algo_get_heuristic)(cublasLtHandle handle, cublasLtMatmulDesc desc,
                                            cublasLtMatrixLayout a, cublasLtMatrixLayout b,
                                            cublasLtMatrixLayout c, cublasLtMatrixLayout d,
                                            cublasLtMatmulPreference preference, int wanted,
                                            CublasLtMatmulHeuristicResult* results, int* found) = nullptr;
  cublasStatus (*matmul)(cublasLtHandle handle, cublasLtMatmulDesc desc, const void* alpha, const void* a,
                         cublasLtMatrixLayout a_layout, const void* b, cublasLtMatrixLayout b_layout,
                         const void* beta, const void* c, cublasLtMatrixLayout c_layout, void* d,
                         cublasLtMatrixLayout d_layout, const CublasLtMatmulAlgo* algo, void* workspace,
                         std::size_t workspace_bytes, CUstream stream) = nullptr;
};

}  // namespace tilewright::cuda::api
