// Libraries of NVIDIA's that are opened at run time, of any version that we know: where they may lie, and the
// opening.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tilewright::cuda {

// Places to look for a library, the first hit wins: each path is the library, a folder with it, or a Python
// site-packages folder; after them the loader's own search.
struct LibrarySearch {
  std::vector<std::string> paths;
};
// The paths of the environment variable `own` (a list separated by ':'), VIRTUAL_ENV's site-packages,
// CUDA_HOME and the usual folders. The only place that reads these variables.
LibrarySearch library_search_from_environment(const char* own);

struct LibraryFiles {
  std::span<const char* const> names;          // of its versions, the wanted one first
  std::span<const char* const> wheel_folders;  // below a site-packages folder
};

struct OpenedLibrary {
  void* handle = nullptr;  // null: not found
  std::string path;
  std::string tried;  // what was looked at in vain, a line each
};
// It stays open until the process ends.
OpenedLibrary open_library(const LibrarySearch& search, const LibraryFiles& files);

}  // namespace tilewright::cuda
