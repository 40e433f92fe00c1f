// cuBLASLt as a Library: products, their batches and transposes, without an epilogue.
#pragma once

#include "backends/cuda/library/cublaslt_api.h"
#include "backends/cuda/library/library.h"

namespace tilewright::cuda {

// libcublasLt.so.13 or .12: in `paths`, at the places of TILEWRIGHT_CUBLASLT, or where NVRTC is looked for,
// too. A failure where there is none.
Result<std::unique_ptr<Library>> open_cublaslt(const std::vector<std::string>& paths,
                                               const LibraryHost& host);

// The same of functions that were found: for tests.
std::unique_ptr<Library> make_cublaslt(const api::CublasLt& functions, std::string path,
                                       const LibraryHost& host);

}  // namespace tilewright::cuda
