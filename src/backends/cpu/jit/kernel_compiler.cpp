// Counts beginnings of texts, and precompiles those that come often.
#include "backends/cpu/jit/kernel_compiler.h"

#include <algorithm>

namespace tilewright::cpu {

std::string leading_includes(std::string_view source) {
  std::string includes;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    const bool is_include = line.starts_with("#include \"tw_cpu/");
    // A backslash makes the next line a part of this one.
    if (line.ends_with('\\') || !(is_include || line.empty() || line.starts_with("//"))) break;
    if (is_include) includes.append(line).append("\n");
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return includes;
}

std::size_t KernelCompiler::precompiled() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(beginnings_.begin(), beginnings_.end(),
                                                [](const auto& b) { return b.second.headers != nullptr; }));
}

std::shared_ptr<const Precompiled> KernelCompiler::headers_of(const std::string& source) {
  const std::string includes = leading_includes(source);
  if (includes.empty()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (beginnings_.size() == kMostBeginnings && !beginnings_.contains(includes)) beginnings_.clear();
    Beginning& beginning = beginnings_[includes];
    // Only the thread that counts to it reads the headers; others go on without.
    if (++beginning.kernels != kPrecompileAt) return beginning.headers;
  }
  auto read = precompile(includes, {.target = target_, .instantiate = true});
  if (!read) return nullptr;  // the source says what is wrong, in its own lines
  const auto headers = std::make_shared<const Precompiled>(std::move(*read));
  const std::lock_guard lock(mutex_);
  if (const auto found = beginnings_.find(includes); found != beginnings_.end())
    found->second.headers = headers;
  return headers;
}

Result<std::string> KernelCompiler::compile(const std::string& source) {
  if (const auto headers = headers_of(source)) {
    auto object = compile_cpp(source, {.target = target_, .precompiled = headers.get()});
    if (object) return object;
  }
  // So that an error reads as it does in the first kernel of a process.
  return compile_cpp(source, {.target = target_});
}

KernelCompiler& kernel_compiler(const CpuTarget& target) {
  static std::mutex mutex;
  static std::map<std::string, KernelCompiler> compilers;  // of a handful of targets
  const std::lock_guard lock(mutex);
  return compilers.try_emplace(to_string(target), target).first->second;
}

}  // namespace tilewright::cpu
