// Where libnvrtc may lie: the environment, pip's folders, CUDA's folders. See NvrtcSearch in nvrtc.h.
#include <glob.h>

#include <cstdlib>

#include "backends/cuda/nvrtc/nvrtc.h"

namespace tilewright::cuda {
namespace {

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

}  // namespace

NvrtcSearch nvrtc_search_from_environment() {
  NvrtcSearch search;
  const std::string chosen = variable("TILEWRIGHT_NVRTC");
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

}  // namespace tilewright::cuda
