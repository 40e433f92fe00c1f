// A cuBLASLt for tests on machines without one: it multiplies on the host, on addresses of the host, by what
// its descriptors say, and writes down what it was asked.
#pragma once

#include <tilewright/base/dtype.h>

#include <string>
#include <vector>

#include "backends/cuda/library/cublaslt_api.h"

namespace tilewright::cuda::fake {

struct Matmul {
  int compute_type = 0, scale_type = 0;
  int transposed[2] = {0, 0};
};
struct Layout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading_dimension = 0, batch_stride = 0;
  std::int32_t batch = 1;
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reduction_schemes = 7, alignment[4] = {256, 256, 256, 256};
};

struct LtState {
  int live_objects = 0;
  int algorithms = 2;  // that it knows for every product
  std::size_t workspace_bytes = 1 << 20;
  api::cublasStatus create_status = 0, heuristic_status = 0, matmul_status = 0;
  int handles = 0, products = 0;
  Matmul last;
  Layout last_layouts[3];  // a, b, d
  Preference last_preference;
  api::CUstream last_stream = nullptr;
  void* last_workspace = nullptr;
  std::uint64_t last_algorithm = 0;
};

// The library's functions are plain pointers: their state cannot be but global. Reset at the start of each
// test.
inline LtState& lt_state() {
  static LtState one;
  return one;
}

inline DType type_of(int type) {
  if (type == api::kCudaR64F) return DType::f64;
  if (type == api::kCudaR16F) return DType::f16;
  return type == api::kCudaR16BF ? DType::bf16 : DType::f32;
}

template <class Object, class Handle>
api::cublasStatus make_object(Handle* handle, const Object& object) {
  ++lt_state().live_objects;
  *handle = reinterpret_cast<Handle>(new Object(object));
  return 0;
}
template <class Object, class Handle>
api::cublasStatus drop_object(Handle handle) {
  --lt_state().live_objects;
  delete reinterpret_cast<Object*>(handle);
  return 0;
}

template <class T>
void set(T& to, const void* value, std::size_t bytes) {
  if (bytes == sizeof(T)) to = *static_cast<const T*>(value);
}

// op(x)[i, j] of one of the batch.
inline double element(const void* data, const Layout& x, bool transposed, std::int64_t batch, std::int64_t i,
                      std::int64_t j) {
  if (transposed) std::swap(i, j);
  const DType dtype = type_of(x.type);
  const std::int64_t at = batch * x.batch_stride + j * x.leading_dimension + i;
  return load_f64(static_cast<const char*>(data) + at * static_cast<std::int64_t>(size_bytes(dtype)), dtype);
}

inline void multiply(const Matmul& desc, const void* a, const Layout& a_layout, const void* b,
                     const Layout& b_layout, void* d, const Layout& d_layout) {
  const bool ta = desc.transposed[0] == api::kOpT, tb = desc.transposed[1] == api::kOpT;
  const DType out = type_of(d_layout.type);
  const std::int64_t depth = ta ? a_layout.rows : a_layout.columns;
  for (std::int64_t batch = 0; batch < d_layout.batch; ++batch)
    for (std::int64_t j = 0; j < d_layout.columns; ++j)
      for (std::int64_t i = 0; i < d_layout.rows; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += element(a, a_layout, ta, batch, i, k) * element(b, b_layout, tb, batch, k, j);
        const std::int64_t at = batch * d_layout.batch_stride + j * d_layout.leading_dimension + i;
        const DType summed = desc.compute_type == api::kCompute64F ? DType::f64 : DType::f32;
        store_f64(static_cast<char*>(d) + at * static_cast<std::int64_t>(size_bytes(out)), out,
                  round_to(summed, sum));
      }
}

inline void add_descriptors(api::CublasLt& lt) {
  lt.matmul_desc_create = [](api::cublasLtMatmulDesc* desc, int compute, int scale) {
    return make_object(desc, Matmul{compute, scale, {0, 0}});
  };
  lt.matmul_desc_destroy = drop_object<Matmul, api::cublasLtMatmulDesc>;
  lt.matmul_desc_set_attribute = [](api::cublasLtMatmulDesc desc, int attribute, const void* value,
                                    std::size_t bytes) {
    auto* of = reinterpret_cast<Matmul*>(desc);
    if (attribute != api::kMatmulDescTransA && attribute != api::kMatmulDescTransB) return 7;
    set(of->transposed[attribute == api::kMatmulDescTransB], value, bytes);
    return 0;
  };
  lt.matrix_layout_create = [](api::cublasLtMatrixLayout* layout, int type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t leading) {
    if (leading < static_cast<std::int64_t>(rows)) return 7;  // as the library has it
    return make_object(layout, Layout{type, static_cast<std::int64_t>(rows),
                                      static_cast<std::int64_t>(columns), leading, 0, 1});
  };
  lt.matrix_layout_destroy = drop_object<Layout, api::cublasLtMatrixLayout>;
  lt.matrix_layout_set_attribute = [](api::cublasLtMatrixLayout layout, int attribute, const void* value,
                                      std::size_t bytes) {
    auto* of = reinterpret_cast<Layout*>(layout);
    if (attribute == api::kLayoutBatchCount)
      set(of->batch, value, bytes);
    else
      set(of->batch_stride, value, bytes);
    return 0;
  };
  lt.matmul_preference_create = [](api::cublasLtMatmulPreference* preference) {
    return make_object(preference, Preference{});
  };
  lt.matmul_preference_destroy = drop_object<Preference, api::cublasLtMatmulPreference>;
  lt.matmul_preference_set_attribute = [](api::cublasLtMatmulPreference preference, int attribute,
                                          const void* value, std::size_t bytes) {
    auto* of = reinterpret_cast<Preference*>(preference);
    if (attribute == api::kPreferenceMaxWorkspaceBytes)
      set(of->workspace_bytes, value, bytes);
    else if (attribute == api::kPreferenceReductionSchemeMask)
      set(of->reduction_schemes, value, bytes);
    else
      set(of->alignment[attribute - api::kPreferenceMinAlignmentA], value, bytes);
    return 0;
  };
}

inline void add_products(api::CublasLt& lt) {
  lt.matmul_algo_get_heuristic = [](api::cublasLtHandle, api::cublasLtMatmulDesc, api::cublasLtMatrixLayout,
                                    api::cublasLtMatrixLayout, api::cublasLtMatrixLayout,
                                    api::cublasLtMatrixLayout, api::cublasLtMatmulPreference preference,
                                    int wanted, api::CublasLtMatmulHeuristicResult* results, int* found) {
    lt_state().last_preference = *reinterpret_cast<Preference*>(preference);
    if (lt_state().heuristic_status != 0) return lt_state().heuristic_status;
    *found = std::min(wanted, lt_state().algorithms);
    for (int i = 0; i < *found; ++i) {
      results[i] = {};
      results[i].algo.data[0] = static_cast<std::uint64_t>(i);
      results[i].workspace_bytes = lt_state().workspace_bytes;
    }
    return 0;
  };
  lt.matmul = [](api::cublasLtHandle, api::cublasLtMatmulDesc desc, const void*, const void* a,
                 api::cublasLtMatrixLayout a_layout, const void* b, api::cublasLtMatrixLayout b_layout,
                 const void*, const void*, api::cublasLtMatrixLayout, void* d,
                 api::cublasLtMatrixLayout d_layout, const api::CublasLtMatmulAlgo* algo, void* workspace,
                 std::size_t, api::CUstream stream) {
    LtState& s = lt_state();
    if (s.matmul_status != 0) return s.matmul_status;
    s.last = *reinterpret_cast<Matmul*>(desc);
    s.last_layouts[0] = *reinterpret_cast<Layout*>(a_layout);
    s.last_layouts[1] = *reinterpret_cast<Layout*>(b_layout);
    s.last_layouts[2] = *reinterpret_cast<Layout*>(d_layout);
    s.last_stream = stream, s.last_workspace = workspace, s.last_algorithm = algo->data[0];
    ++s.products;
    multiply(s.last, a, s.last_layouts[0], b, s.last_layouts[1], d, s.last_layouts[2]);
    return 0;
  };
}

// Version 13.1.0.
inline api::CublasLt make_cublaslt_functions() {
  lt_state() = {};
  api::CublasLt lt;
  lt.get_version = [] { return std::size_t{130100}; };
  lt.get_status_string = [](api::cublasStatus) { return "as the fake library says"; };
  lt.create = [](api::cublasLtHandle* handle) {
    if (lt_state().create_status != 0) return lt_state().create_status;
    ++lt_state().handles;
    return make_object(handle, Matmul{});
  };
  lt.destroy = drop_object<Matmul, api::cublasLtHandle>;
  add_descriptors(lt);
  add_products(lt);
  return lt;
}

}  // namespace tilewright::cuda::fake
