// What cuBLASLt makes and wants destroyed, and how its failures are told.
#pragma once

#include "backends/cuda/library/cublaslt_api.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

namespace tilewright::cuda {

inline Status check(const api::CublasLt& lt, api::cublasStatus status, std::string_view what) {
  if (status == api::kCublasSuccess) return Unit{};
  return failure(Failure::Kind::device,
                 fmt::format("{}: {} ({})", what, lt.get_status_string(status), status));
}

// Shares the functions with whoever made it, so that it may be the last to go.
template <class Handle, api::cublasStatus (*api::CublasLt::*kDestroy)(Handle)>
class CublasLtObject {
 public:
  CublasLtObject() = default;
  CublasLtObject(std::shared_ptr<const api::CublasLt> lt, Handle handle)
      : lt_(std::move(lt)), handle_(handle) {}
  CublasLtObject(CublasLtObject&& other) noexcept
      : lt_(std::move(other.lt_)), handle_(std::exchange(other.handle_, Handle{})) {}
  CublasLtObject& operator=(CublasLtObject&& other) noexcept {
    std::swap(lt_, other.lt_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CublasLtObject() {
    if (handle_ != Handle{}) (void)(lt_.get()->*kDestroy)(handle_);
  }
  Handle get() const { return handle_; }

 private:
  std::shared_ptr<const api::CublasLt> lt_;
  Handle handle_{};
};

using CublasLtHandle = CublasLtObject<api::cublasLtHandle, &api::CublasLt::destroy>;
using CublasLtDesc = CublasLtObject<api::cublasLtMatmulDesc, &api::CublasLt::matmul_desc_destroy>;
using CublasLtLayout = CublasLtObject<api::cublasLtMatrixLayout, &api::CublasLt::matrix_layout_destroy>;
using CublasLtPreference =
    CublasLtObject<api::cublasLtMatmulPreference, &api::CublasLt::matmul_preference_destroy>;

}  // namespace tilewright::cuda
