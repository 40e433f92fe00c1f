// Opening cuBLASLt.
#include "backends/cuda/host/library_search.h"
#include "backends/cuda/host/library_symbols.h"
#include "backends/cuda/library/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace tilewright::cuda {

namespace {

Status load_symbols(api::CublasLt& lt, void* library, const std::string& path) {
  LibrarySymbols symbols(library);
  const auto load = [&](const char* symbol, auto& slot) { symbols.load(symbol, slot); };
  load("cublasLtGetVersion", lt.get_version);
  load("cublasLtGetStatusString", lt.get_status_string);
  load("cublasLtCreate", lt.create);
  load("cublasLtDestroy", lt.destroy);
  load("cublasLtMatmulDescCreate", lt.matmul_desc_create);
  load("cublasLtMatmulDescDestroy", lt.matmul_desc_destroy);
  load("cublasLtMatmulDescSetAttribute", lt.matmul_desc_set_attribute);
  load("cublasLtMatrixLayoutCreate", lt.matrix_layout_create);
  load("cublasLtMatrixLayoutDestroy", lt.matrix_layout_destroy);
  load("cublasLtMatrixLayoutSetAttribute", lt.matrix_layout_set_attribute);
  load("cublasLtMatmulPreferenceCreate", lt.matmul_preference_create);
  load("cublasLtMatmulPreferenceDestroy", lt.matmul_preference_destroy);
  load("cublasLtMatmulPreferenceSetAttribute", lt.matmul_preference_set_attribute);
  load("cublasLtMatmulAlgoGetHeuristic", lt.matmul_algo_get_heuristic);
  load("cublasLtMatmul", lt.matmul);
  return symbols.all_found(path);
}

}  // namespace

Result<std::unique_ptr<Library>> open_cublaslt(const std::vector<std::string>& paths,
                                               const LibraryHost& host) {
  constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  constexpr const char* kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cublas/lib"};
  LibrarySearch search = library_search_from_environment("TILEWRIGHT_CUBLASLT");
  // Other libraries' files are among the paths, too.
  std::vector<std::string> folders;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(folders), [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  });
  search.paths.insert(search.paths.begin(), folders.begin(), folders.end());
  const OpenedLibrary library = open_library(search, {kNames, kWheelFolders});
  if (library.handle == nullptr)
    return failure(Failure::Kind::not_found, "cuBLASLt was not found. Looked at:" + library.tried);
  api::CublasLt functions;
  if (auto s = load_symbols(functions, library.handle, library.path); !s) return s.error();
  return make_cublaslt(functions, library.path, host);
}

}  // namespace tilewright::cuda
