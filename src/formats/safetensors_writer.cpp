// save_safetensors(): one file, or several and their index.
#include "formats/safetensors_writer.h"

#include "base/safe_file.h"
#include "formats/host_array.h"
#include "formats/in_file.h"
#include "formats/named_check.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"

#include <algorithm>
#include <filesystem>

namespace tilewright {

namespace formats {

namespace {

using Group = std::vector<const Written*>;  // of one file

std::uint64_t bytes_in(const Written& t) { return size_of(t.shape, t.dtype); }

// The widest first, then by name: each begins at a multiple of its element's size.
Group in_order(const std::vector<Written>& tensors) {
  Group all;
  all.reserve(tensors.size());
  for (const Written& t : tensors) all.push_back(&t);
  std::sort(all.begin(), all.end(), [](const Written* a, const Written* b) {
    const std::size_t wide_a = size_bytes(a->dtype), wide_b = size_bytes(b->dtype);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  return all;
}

std::vector<Group> shards_of(const Group& all, std::uint64_t most_bytes) {
  std::vector<Group> shards(1);
  std::uint64_t bytes = 0;
  for (const Written* t : all) {
    const std::uint64_t more = bytes_in(*t);
    if (most_bytes > 0 && !shards.back().empty() && (bytes > most_bytes || more > most_bytes - bytes)) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(t);
    bytes += more;
  }
  return shards;
}

void check_metadata(const Metadata& metadata) {
  for (std::size_t i = 0; i < metadata.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (metadata[i].first == metadata[k].first)
        throw Error(fmt::format("the metadata has \"{}\" twice", metadata[i].first));
}

// Written and on the disk, under its temporary name.
SafeFile write_file(const std::string& path, const Group& tensors, const Metadata& metadata) {
  std::vector<Described> described;
  described.reserve(tensors.size());
  for (const Written* t : tensors) described.push_back({t->name, t->dtype, t->shape});
  const std::string header = safetensors_header(described, metadata);
  SafeFile file = SafeFile::create(path).value();
  file.write(header).value();
  for (const Written* t : tensors) of_tensor(t->name, [&] { file.write(t->elements().bytes).value(); });
  file.finish().value();
  return file;
}

std::vector<SafeFile> write_shards(const std::string& path, const std::vector<Group>& shards,
                                   const Metadata& metadata) {
  constexpr std::string_view kSuffix = ".safetensors";
  const std::string stem = path.ends_with(kSuffix) ? path.substr(0, path.size() - kSuffix.size()) : path;
  std::vector<SafeFile> files;
  WeightMap map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string shard = fmt::format("{}-{:05}-of-{:05}{}", stem, i + 1, shards.size(), kSuffix);
    files.push_back(write_file(shard, shards[i], metadata));
    for (const Written* t : shards[i]) {
      map.emplace_back(t->name, std::filesystem::path(shard).filename().string());
      total += bytes_in(*t);
    }
  }
  std::sort(map.begin(), map.end());
  files.push_back(SafeFile::create(stem + std::string(kSuffix) + std::string(kIndexSuffix)).value());
  files.back().write(safetensors_index(map, total)).value();
  files.back().finish().value();
  return files;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<Written>& tensors,
                       const SafetensorsOptions& options) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const Written& t : tensors) names.emplace_back(t.name);
  check_names(std::move(names));
  check_metadata(options.metadata);
  const std::vector<Group> shards = shards_of(in_order(tensors), options.shard_bytes);
  if (shards.size() > 1) {
    for (SafeFile& file : write_shards(path, shards, options.metadata)) file.publish().value();
  } else {
    write_file(path, shards.front(), options.metadata).publish().value();
  }
}

}  // namespace formats

void save_safetensors(const std::string& path, const NamedTensors& tensors, const SafetensorsOptions& options,
                      const Location& where) {
  using namespace formats;
  in_file("save_safetensors", path, where, [&] {
    std::vector<Written> written;
    written.reserve(tensors.size());
    for (const NamedTensor& t : tensors)
      of_tensor(t.name, [&] {
        written.push_back({t.name, t.tensor.dtype(where), t.tensor.shape(where),
                           [&t, &where] { return host_elements(t.tensor, where); }});
      });
    write_safetensors(path, written, options);
  });
}

}  // namespace tilewright
