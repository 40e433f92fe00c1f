// The arrays of an .npz file.
#pragma once

#include "formats/zip.h"

#include <string>
#include <vector>

namespace tilewright::formats {

struct NpzEntry {
  std::string name;  // without ".npy"
  ZipEntry packed;
};

// In the order of the archive. Throws Error: what is wrong with it, names twice too.
std::vector<NpzEntry> npz_entries(Bytes file);

}  // namespace tilewright::formats
