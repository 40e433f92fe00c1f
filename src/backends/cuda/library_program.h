// A kernel whose place a library's call has taken.
#pragma once

#include "backends/cuda/library/library.h"
#include "backends/cuda/recordable.h"

namespace tilewright::cuda {

class CudaBackend;

class LibraryProgram final : public RecordableProgram {
 public:
  LibraryProgram(CudaBackend& backend, std::unique_ptr<PreparedCall> call)
      : backend_(backend), call_(std::move(call)) {}
  Status launch(const backends::LaunchArgs& args) override;
  std::string describe() const override { return call_->describe(); }
  Result<RecordedWork> record(const backends::RecordedLaunch& recorded) override;
  bool records_always() const override { return false; }  // what a library does inside is its own

 private:
  CudaBackend& backend_;
  std::unique_ptr<PreparedCall> call_;
};

}  // namespace tilewright::cuda
