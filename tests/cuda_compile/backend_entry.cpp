// The library that a Context opens as its CUDA backend in these tests: the program around it makes the
// backend.
#include "cuda_compile/compiling_backend.h"

#include <tilewright/version.h>

TW_BACKEND_ENTRY const char* tilewright_backend_version() { return TILEWRIGHT_VERSION; }

TW_BACKEND_ENTRY tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tilewright_open_backend(
    const tilewright::backends::BackendOptions& options) {
  return tw_open_compiling_backend(options);
}
