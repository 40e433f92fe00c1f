// Compiles printed kernels: a process that has many of them reads the device headers once.
#pragma once

#include <tilewright/base/error.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cpu/jit/compiler.h"

namespace tilewright::cpu {

// Whether the first line that is neither empty nor a comment includes a device header: what comes before an
// include may change what the header declares.
bool begins_with_device_header(std::string_view source);

// Machine code and errors are those of compile_cpp(), but for a text that uses a device header without
// including it: that compiles once the headers are precompiled. May be called from several threads at once.
class KernelCompiler {
 public:
  explicit KernelCompiler(CpuTarget target) : target_(std::move(target)) {}

  Result<std::string> compile(const std::string& source);
  bool precompiled() const;

  // Reading all device headers into this form costs what 6 (matmuls) to 14 (elementwise) kernels gain by it
  // (docs/notes/2026-11-28-time-of-cpu-kernels.md).
  static constexpr int kPrecompileAt = 12;

 private:
  std::shared_ptr<const Precompiled> headers_of(const std::string& source);

  CpuTarget target_;
  mutable std::mutex mutex_;  // not held while Clang works
  int kernels_ = 0;
  std::shared_ptr<const Precompiled> headers_;  // null before the kernel kPrecompileAt
};

// The process's compiler for a target: devices that are opened one after another find what was read for the
// one before.
KernelCompiler& kernel_compiler(const CpuTarget& target);

}  // namespace tilewright::cpu
