// The arrays of an .npz file.
#pragma once

#include "formats/zip.h"

#include <string>
#include <vector>

namespace tilewright::formats {

// The names of the archive's entries without ".npy", in their order. Throws Error for another entry, and for
// a name that is there twice.
std::vector<std::string> npz_names(const ZipReader& archive);

}  // namespace tilewright::formats
