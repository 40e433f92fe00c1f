// The environment, pip's folders, CUDA's folders.
#include "backends/cuda/host/library_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

void append_matches(const std::string& pattern, std::vector<std::string>& out) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The library's files in a folder and in the folders of wheels below it, or the path itself.
std::vector<std::string> files_at(const std::string& path, const LibraryFiles& files) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<std::string> out;
  const auto add = [&](const fs::path& folder) {
    for (const char* name : files.names)
      if (const auto file = folder / name; fs::exists(file, ignored)) out.push_back(file.string());
  };
  add(path);
  for (const char* folder : files.wheel_folders) add(fs::path(path) / folder);
  return out;
}

}  // namespace

LibrarySearch library_search_from_environment(const char* own) {
  LibrarySearch search;
  const std::string chosen = variable(own);
  for (std::size_t at = 0; at < chosen.size();) {
    const auto end = std::min(chosen.find(':', at), chosen.size());
    if (end > at) search.paths.push_back(chosen.substr(at, end - at));
    at = end + 1;
  }
  if (const auto venv = variable("VIRTUAL_ENV"); !venv.empty()) {
    append_matches(venv + "/lib/python3*/site-packages", search.paths);
  }
  if (const auto home = variable("CUDA_HOME"); !home.empty()) search.paths.push_back(home + "/lib64");
  search.paths.emplace_back("/usr/local/cuda/lib64");
  if (const auto home = variable("HOME"); !home.empty()) {
    append_matches(home + "/.local/lib/python3*/site-packages", search.paths);
  }
  append_matches("/usr/local/lib/python3*/dist-packages", search.paths);
  append_matches("/usr/local/lib/python3*/site-packages", search.paths);
  append_matches("/usr/lib/python3*/site-packages", search.paths);
  return search;
}

OpenedLibrary open_library(const LibrarySearch& search, const LibraryFiles& files) {
  OpenedLibrary out;
  const auto opens = [&](const std::string& file) {
    out.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (out.handle == nullptr) out.tried += fmt::format("\n  {}", dlerror());
    out.path = file;
    return out.handle != nullptr;
  };
  for (const std::string& place : search.paths) {
    const std::vector<std::string> found = files_at(place, files);
    if (found.empty()) out.tried += fmt::format("\n  {}: holds no {}", place, fmt::join(files.names, " or "));
    if (std::any_of(found.begin(), found.end(), opens)) return out;
  }
  if (!std::any_of(files.names.begin(), files.names.end(), opens)) out.path.clear();
  return out;
}

}  // namespace tilewright::cuda
