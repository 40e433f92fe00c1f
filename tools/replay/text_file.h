// Files that the tools here read whole.
#pragma once

#include <tilewright/base/error.h>

#include <fstream>
#include <sstream>
#include <string>

namespace tilewright::replay {

// What a file holds; throws Error where there is none.
inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("no file " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tilewright::replay
