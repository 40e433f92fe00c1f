// What libtw_cuda.so shows of itself.
#include "backends/cuda/cuda_backend.h"

#include <tilewright/version.h>

TW_BACKEND_ENTRY const char* tilewright_backend_version() { return TILEWRIGHT_VERSION; }

TW_BACKEND_ENTRY tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tilewright_open_backend(
    const tilewright::backends::BackendOptions& options) {
  return tilewright::cuda::CudaBackend::open(options);
}
