// The CUDA backend without a GPU: kernels are chosen, printed and compiled as for one, and launching them
// does nothing. It finds out which kernels a program of tensors needs, and what their compiler says of them.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/nvrtc/nvrtc.h"

#include <set>

namespace tilewright::test {

// Compiles each text once and collects what a reader of the log would complain about.
class KernelCompiler {
 public:
  // `keep`: a folder in which every source and binary is left.
  explicit KernelCompiler(std::string architecture, std::string keep = "");

  const std::string& architecture() const { return architecture_; }
  const backends::Backend& printer() const { return *printer_; }
  // The kernel's best candidate.
  Status compile(const tile::Kernel& kernel);
  Status compile(const tile::Kernel& kernel, const backends::Source& source);

  int compiled() const { return static_cast<int>(seen_.size()); }
  int asked() const { return asked_; }
  const std::vector<std::string>& complaints() const { return complaints_; }
  const std::vector<std::string>& notes() const { return notes_; }  // a few bytes spilled, a start in order

 private:
  Status keep(const backends::Source& source, const backends::Binary& binary) const;

  std::string architecture_, keep_;
  std::unique_ptr<backends::Backend> printer_;
  std::set<std::string> seen_;  // hashes of texts
  std::vector<std::string> complaints_, notes_;
  int asked_ = 0, waiting_ = 0, in_order_ = 0;  // in_order_: kernels that do not overlap the one before
};

// A backend around `compiler`, which must outlive it.
std::unique_ptr<backends::Backend> open_compiling_backend(KernelCompiler& compiler);

// What contexts that are opened from now on use.
void use_for_contexts(KernelCompiler& compiler);

}  // namespace tilewright::test

extern "C" tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tw_open_compiling_backend(
    const tilewright::backends::BackendOptions& options);
