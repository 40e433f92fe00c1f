// The manifest of a folder of checkpoints: a text that says which of its files are checkpoints.
//
//   tilewright checkpoints 1
//   250 step-00000250.safetensors best
//   500 step-00000500.safetensors
//   checksum 6c62272e07bb014262b821756295c58d
#pragma once

#include <tilewright/base/error.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::nn {

struct ManifestEntry {
  std::int64_t step = 0;
  bool is_best = false;
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};
using Manifest = std::vector<ManifestEntry>;  // by step

inline constexpr const char* kManifestName = "manifest";

// "step-00000250.safetensors", and its step; nothing where it is no such name.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of_name(std::string_view name);

std::string to_text(const Manifest& manifest);
// A failure where the text is not one that to_text() wrote, to the byte.
Result<Manifest> parse_manifest(std::string_view text);

// What is left when a checkpoint of `entry.step` has been added: no later ones, the last `keep_last`, and the
// best.
Manifest with_entry(const Manifest& manifest, const ManifestEntry& entry, int keep_last);

}  // namespace tilewright::nn
