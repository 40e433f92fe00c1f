// NVRTC, opened at run time: CUDA C++ text → cubin, without nvcc and without a GPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/host/library_search.h"
#include "backends/cuda/machine/arch.h"
#include "backends/cuda/nvrtc/nvrtc_log.h"
#include "tilewright/base/error.h"

namespace tilewright::cuda {

// Places where libnvrtc may lie; TILEWRIGHT_NVRTC comes first.
LibrarySearch nvrtc_search_from_environment();

// A file that the source may #include; held in memory.
struct Header {
  std::string name;  // as written between the quotes
  std::string text;
};

struct NvrtcOptions {
  Arch arch;
  std::string file_name = "kernel.cu";  // what errors call the source
  std::vector<Header> headers;
  bool device_headers = true;      // offer our own headers, "tw_cuda/….cuh"
  std::vector<std::string> flags;  // handed to NVRTC after ours
  bool lines = false;              // -lineinfo: source lines for profilers; the code stays as fast
};

struct Binary {
  std::string cubin;
  std::string log;
  CompileLog parsed;  // slow-code warnings (C75xx), registers and spills of each kernel
  Arch arch;
  double compile_ms = 0;
};

class Nvrtc {
 public:
  // Fails with not_found; the message lists every place looked at and how to install NVRTC.
  static Result<Nvrtc> open(const LibrarySearch& search);
  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;
  ~Nvrtc();

  const std::string& version() const;       // "13.0"
  const std::string& library_path() const;  // what was opened
  // May be called from several threads at once. Fails with Kind::compile and NVRTC's log.
  Result<Binary> compile(const std::string& source, const NvrtcOptions& options) const;

 private:
  struct State;
  explicit Nvrtc(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The flags that compile() hands to NVRTC for these options: a part of every cache key.
std::vector<std::string> nvrtc_flags(const NvrtcOptions& options);

}  // namespace tilewright::cuda
