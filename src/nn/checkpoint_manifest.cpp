// Text of a manifest, and which checkpoints stay.
#include "nn/checkpoint_manifest.h"

#include <tilewright/base/hash.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tilewright::nn {

namespace {

constexpr std::string_view kHead = "tilewright checkpoints 1\n", kSum = "checksum ";
constexpr std::string_view kBefore = "step-", kBehind = ".safetensors";

Failure damaged(std::string why) { return failure(Failure::Kind::io, "it is damaged: " + std::move(why)); }

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}{}", kBefore, step, kBehind); }

std::optional<std::int64_t> step_of_name(std::string_view name) {
  std::int64_t step = 0;
  if (name.starts_with(kBefore)) {
    const char* first = name.data() + kBefore.size();
    (void)std::from_chars(first, name.data() + name.size(), step);
  }
  return checkpoint_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string to_text(const Manifest& manifest) {
  std::string text(kHead);
  for (const ManifestEntry& e : manifest)
    text += fmt::format("{} {}{}\n", e.step, checkpoint_name(e.step), e.is_best ? " best" : "");
  return fmt::format("{}{}{}\n", text, kSum, to_hex(hash_bytes(text)));
}

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  std::string_view rest = text;
  if (!rest.starts_with(kHead)) return damaged("it does not begin as a manifest does");
  rest.remove_prefix(kHead.size());
  while (!rest.empty() && !rest.starts_with(kSum)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    ManifestEntry entry{.is_best = line.ends_with(" best")};
    (void)std::from_chars(line.data(), line.data() + line.size(), entry.step);
    manifest.push_back(entry);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  if (to_text(manifest) != text) return damaged("its checksum is not that of what it says");
  return manifest;
}

Manifest with_entry(const Manifest& manifest, const ManifestEntry& entry, int keep_last) {
  Manifest all;
  for (ManifestEntry e : manifest) {
    if (e.step >= entry.step) continue;
    e.is_best = e.is_best && !entry.is_best;
    all.push_back(e);
  }
  all.push_back(entry);
  Manifest kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].is_best || all.size() - i <= static_cast<std::size_t>(keep_last)) kept.push_back(all[i]);
  return kept;
}

}  // namespace tilewright::nn
