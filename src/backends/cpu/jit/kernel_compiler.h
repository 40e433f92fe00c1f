// Compiles printed kernels: headers that many of a process's kernels begin with are read once.
#pragma once

#include <tilewright/base/error.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cpu/jit/compiler.h"

namespace tilewright::cpu {

// The #includes of device headers that a text begins with, a line each, comments and empty lines between them
// left out: what Clang has read when it comes to the first line of another kind.
std::string leading_includes(std::string_view source);

// Machine code and errors are those of compile_cpp(); only what the text's leading #includes declare may have
// been read before. May be called from several threads at once.
class KernelCompiler {
 public:
  explicit KernelCompiler(CpuTarget target) : target_(std::move(target)) {}

  Result<std::string> compile(const std::string& source);
  // Beginnings that are held precompiled now.
  std::size_t precompiled() const;

  // Reading the headers into this form costs what some six small kernels gain by it
  // (docs/notes/2026-11-28-minutes-of-tests.md). Other numbers were not tried.
  static constexpr int kPrecompileAt = 4;
  // 0.4 MB each. With one more all are forgotten: a process that prints more kinds of kernels counts anew.
  static constexpr std::size_t kMostBeginnings = 64;

 private:
  struct Beginning {
    int kernels = 0;
    std::shared_ptr<const Precompiled> headers;  // null before the kernel kPrecompileAt
  };
  std::shared_ptr<const Precompiled> headers_of(const std::string& source);

  CpuTarget target_;
  mutable std::mutex mutex_;  // of beginnings_; not held while Clang works
  std::map<std::string, Beginning, std::less<>> beginnings_;
};

// The process's compiler for a target: devices that are opened one after another find what was read for the
// one before.
KernelCompiler& kernel_compiler(const CpuTarget& target);

}  // namespace tilewright::cpu
