// Counts kernels, and precompiles the device headers where there are many.
#include "backends/cpu/jit/kernel_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/jit/device_headers.h"

namespace tilewright::cpu {

namespace {

std::string all_device_headers() {
  std::string includes;
  for (const DeviceHeader& header : device_headers())
    includes += fmt::format("#include \"{}\"\n", header.name);
  return includes;
}

}  // namespace

bool begins_with_device_header(std::string_view source) {
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    if (line.ends_with('\\')) return false;  // it makes the next line a part of this one
    if (!line.empty() && !line.starts_with("//")) return line.starts_with("#include \"tw_cpu/");
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return false;
}

bool KernelCompiler::precompiled() const {
  const std::lock_guard lock(mutex_);
  return headers_ != nullptr;
}

std::shared_ptr<const Precompiled> KernelCompiler::headers_of(const std::string& source) {
  if (!begins_with_device_header(source)) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    // Only the thread that counts to it reads the headers; others go on without.
    if (++kernels_ != kPrecompileAt) return headers_;
  }
  auto read = precompile(all_device_headers(), {.target = target_, .instantiate = true});
  if (!read) return nullptr;  // the source says what is wrong, in its own lines
  const auto headers = std::make_shared<const Precompiled>(std::move(*read));
  const std::lock_guard lock(mutex_);
  headers_ = headers;
  return headers;
}

Result<std::string> KernelCompiler::compile(const std::string& source) {
  if (const auto headers = headers_of(source)) {
    auto object = compile_cpp(source, {.target = target_, .precompiled = headers.get()});
    if (object) return object;
  }
  // Compiled once more without precompiled headers where that failed, so that errors read alike.
  return compile_cpp(source, {.target = target_});
}

KernelCompiler& kernel_compiler(const CpuTarget& target) {
  static std::mutex mutex;
  static std::map<std::string, KernelCompiler> compilers;  // of a handful of targets
  const std::lock_guard lock(mutex);
  return compilers.try_emplace(to_string(target), target).first->second;
}

}  // namespace tilewright::cpu
