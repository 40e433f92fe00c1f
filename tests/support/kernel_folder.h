// Compiled kernels that all tests of a process share: two tests that ask for an equal kernel compile it once.
#pragma once

#include <cstdlib>

#include <filesystem>
#include <string>
#include <system_error>

namespace tilewright::test {

// A folder for ContextOptions::cache_directory, empty when the process begins and removed at its end, so that
// every run of a test program compiles all its kernels, whatever earlier ones left. Kernels are not kept if
// there is no place for it.
inline const std::string& kernel_folder() {
  struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "tw_kernels_XXXXXX").string();
    Folder() {
      if (mkdtemp(path.data()) == nullptr) path.clear();
    }
    ~Folder() {
      std::error_code ignored;
      if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace tilewright::test
