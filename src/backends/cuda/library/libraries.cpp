// The list of libraries.
#include "backends/cuda/library/cublaslt.h"
#include "backends/cuda/library/library.h"

namespace tilewright::cuda {

Libraries open_libraries(const std::vector<std::string>& paths, const LibraryHost& host) {
  Libraries out;
  const auto add = [&](auto opened) {
    if (opened) out.push_back(std::move(*opened));
  };
  add(open_cublaslt(paths, host));
  return out;
}

}  // namespace tilewright::cuda
