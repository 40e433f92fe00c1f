// The functions of a library that was opened at run time, and which of them it lacks.
#pragma once

#include <tilewright/base/error.h>

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

namespace tilewright::cuda {

class LibrarySymbols {
 public:
  explicit LibrarySymbols(void* library) : library_(library) {}
  template <class Function>
  void load(const char* symbol, Function*& slot) {
    slot = reinterpret_cast<Function*>(dlsym(library_, symbol));
    if (slot == nullptr) missing_ += fmt::format("{}{}", missing_.empty() ? "" : ", ", symbol);
  }
  // A failure that names the library, what it lacks, and `advice`: what to do, from its first sign on.
  Status all_found(const std::string& path, const std::string& advice = "") const {
    if (missing_.empty()) return Unit{};
    return failure(Failure::Kind::unsupported, fmt::format("{} lacks {}{}", path, missing_, advice));
  }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace tilewright::cuda
