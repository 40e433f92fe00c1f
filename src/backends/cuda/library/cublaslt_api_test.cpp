// Our declarations of cuBLASLt's API against the real header, at compile time, where this is installed.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/library/cublaslt_api.h"

namespace tilewright::cuda {
namespace {

// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are compared on purpose.
// The same as seen by the calling convention: pointers meet pointers, and integers and enums meet by size.
template <class A, class B>
constexpr bool same_kind =
    std::is_pointer_v<A> ? std::is_pointer_v<B>
                         : (std::is_integral_v<B> || std::is_enum_v<B>) && sizeof(A) == sizeof(B);
// NOLINTEND(bugprone-sizeof-expression)
template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = same_kind<R, S> && (same_kind<A, B> && ... && true);
};

#define MATCHES(member, function) \
  static_assert(SameCall<decltype(api::CublasLt::member), decltype(&::function)>::value, #function)
MATCHES(get_version, cublasLtGetVersion);
MATCHES(get_status_string, cublasLtGetStatusString);
MATCHES(create, cublasLtCreate);
MATCHES(destroy, cublasLtDestroy);
MATCHES(matmul_desc_create, cublasLtMatmulDescCreate);
MATCHES(matmul_desc_destroy, cublasLtMatmulDescDestroy);
MATCHES(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute);
MATCHES(matrix_layout_create, cublasLtMatrixLayoutCreate);
MATCHES(matrix_layout_destroy, cublasLtMatrixLayoutDestroy);
MATCHES(matrix_layout_set_attribute, cublasLtMatrixLayoutSetAttribute);
MATCHES(matmul_preference_create, cublasLtMatmulPreferenceCreate);
MATCHES(matmul_preference_destroy, cublasLtMatmulPreferenceDestroy);
MATCHES(matmul_preference_set_attribute, cublasLtMatmulPreferenceSetAttribute);
MATCHES(matmul_algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic);
MATCHES(matmul, cublasLtMatmul);
#undef MATCHES

#define EQUALS(ours, theirs) static_assert(static_cast<int>(api::ours) == static_cast<int>(theirs), #theirs)
EQUALS(kCublasSuccess, CUBLAS_STATUS_SUCCESS);
EQUALS(kCublasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
EQUALS(kCudaR32F, CUDA_R_32F);
EQUALS(kCudaR64F, CUDA_R_64F);
EQUALS(kCudaR16F, CUDA_R_16F);
EQUALS(kCudaR16BF, CUDA_R_16BF);
EQUALS(kCompute32F, CUBLAS_COMPUTE_32F);
EQUALS(kCompute64F, CUBLAS_COMPUTE_64F);
EQUALS(kCompute32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
EQUALS(kOpN, CUBLAS_OP_N);
EQUALS(kOpT, CUBLAS_OP_T);
EQUALS(kMatmulDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
EQUALS(kMatmulDescTransB, CUBLASLT_MATMUL_DESC_TRANSB);
EQUALS(kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
EQUALS(kLayoutStridedBatchOffset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
EQUALS(kPreferenceMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
EQUALS(kPreferenceReductionSchemeMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
EQUALS(kPreferenceMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
EQUALS(kPreferenceMinAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
EQUALS(kPreferenceMinAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
EQUALS(kPreferenceMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
EQUALS(kReductionInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE);
EQUALS(kReductionComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
#undef EQUALS

using Ranked = api::CublasLtMatmulHeuristicResult;
static_assert(sizeof(api::CublasLtMatmulAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Ranked) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Ranked, algo) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(Ranked, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Ranked, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

}  // namespace
}  // namespace tilewright::cuda
#endif
