// An .npy file in memory, whole or as an entry of an archive.
#pragma once

#include "formats/host_array.h"

#include <string>

namespace tilewright::formats {

// Elements in the machine's byte order: a part of the file, or `swapped`.
struct NpyArray {
  HostArray array;
  std::string swapped;
};

// Throws Error: what is wrong with the file.
std::unique_ptr<const NpyArray> read_npy(Bytes file);

}  // namespace tilewright::formats
