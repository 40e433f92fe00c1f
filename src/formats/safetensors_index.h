// The index of a safetensors model in several files: which tensor is in which.
#pragma once

#include "formats/bytes.h"

#include <string>
#include <utility>
#include <vector>

namespace tilewright::formats {

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // tensor, file; sorted by tensor

inline constexpr std::string_view kIndexSuffix = ".index.json";

// Throws Error: what is wrong with it; a file in another folder, too.
WeightMap parse_safetensors_index(Bytes file);
std::string safetensors_index(const WeightMap& map, std::uint64_t total_bytes);

}  // namespace tilewright::formats
