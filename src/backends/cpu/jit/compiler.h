// C++ text to an object file in memory: Clang 19 as a library, nothing read from or written to disk.
#pragma once

#include <tilewright/base/error.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/host/isa.h"

namespace tilewright::cpu {

// How much work goes into the machine code.
enum class Effort {
  none,    // as fast to compile as can be: for debugging
  kernel,  // the passes that pay for printed kernels, whose vectors and unrolling are in the text already
  full,    // Clang's -O3 with its vectorisers: for scalar loops, at about three times the compile time
};

// A text as Clang has read it, in a form that it reads faster.
struct Precompiled {
  std::string text, bytes;
};

struct CompileOptions {
  CpuTarget target;
  // (name, text) of files that the source may include as "name", besides the device headers ("tw_cpu/exp.h").
  std::vector<std::pair<std::string, std::string>> headers = {};
  // What precompile() made of a text that the source then begins with, unsaid; null for none. The other
  // options are those that it was made with, and it outlives the call.
  const Precompiled* precompiled = nullptr;
  // precompile() instantiates the templates that the text uses, which each source did else.
  bool instantiate = false;
  Effort effort = Effort::kernel;
  // Variables that are read before they are written hold a pattern, floats a NaN, instead of what was there.
  bool show_unwritten = false;
  // What the source is called in messages before its first #line.
  std::string source_name = "kernel.cpp";
};

// C++20 without exceptions, RTTI or system headers, to the bytes of a position-independent ELF object. An
// error in the text is a Failure{compile} with a line "file:line:column: error: …" for each diagnostic, where
// a #line directive is honoured. May be called from several threads at once.
Result<std::string> compile_cpp(const std::string& source, const CompileOptions& options);

// The text, mostly of #includes, read once for many sources (CompileOptions::precompiled). Errors as of
// compile_cpp. It pays where a dozen sources or more include what takes long to read.
Result<Precompiled> precompile(const std::string& text, const CompileOptions& options);

// The version of the compiler, for cache keys: "clang 19.1.7".
std::string compiler_version();
// The optimisations that kernels get, which are part of what a binary is.
std::string kernel_passes();

}  // namespace tilewright::cpu
