// Safetensors: opened files, and tensors out of them.
#include "formats/host_array.h"
#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"

#include <tilewright/formats/safetensors.h>
#include <tilewright/tensor/composed.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

namespace tilewright {

using formats::Bytes;
using formats::MappedFile;
using formats::SafetensorsEntry;

namespace {
// How many characters must be put in, taken out or replaced to make one name of the other (Levenshtein).
std::size_t changes_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t above_left = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, above_left + (a[i] == b[j] ? 0 : 1)});
      above_left = above;
    }
  }
  return row[b.size()];
}
}  // namespace

struct Safetensors::State {
  struct Place {
    SafetensorsEntry entry;
    std::shared_ptr<const MappedFile> file;
  };
  std::string path;
  List<Info> tensors;
  std::map<std::string, Place> places;
  Metadata metadata;

  // Adds the tensors of a file; of a shard, all must be in the index as well.
  void add(const std::string& file_path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(file_path);
    formats::SafetensorsHeader header = formats::parse_safetensors(file->bytes());
    if (metadata.empty()) metadata = std::move(header.metadata);
    for (SafetensorsEntry& e : header.entries) {
      tensors.push_back(e.info);
      const std::string name = e.info.name;
      if (!places.emplace(name, Place{std::move(e), file}).second)
        throw Error(fmt::format("tensor \"{}\" is in another file as well", name));
    }
  }

  void add_index(const std::string& index_path) {
    const formats::WeightMap map = formats::parse_safetensors_index(MappedFile::open(index_path)->bytes());
    const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();
    std::vector<std::string> shards;
    for (const auto& [tensor, shard] : map) shards.push_back(shard);
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    std::map<std::string, const MappedFile*> files;
    for (const std::string& shard : shards) {
      const std::size_t before = tensors.size();
      try {
        add((folder / shard).string());
      } catch (const Error& e) {
        throw Error(fmt::format("{}: {}", shard, e.what()));
      }
      files[shard] = tensors.size() > before ? places.at(tensors.back().name).file.get() : nullptr;
    }
    for (const auto& [tensor, shard] : map) {
      const auto found = places.find(tensor);
      if (found == places.end() || found->second.file.get() != files[shard])
        throw Error(fmt::format("tensor \"{}\" is not in {}, where the index says", tensor, shard));
    }
    if (places.size() != map.size())
      throw Error(
          fmt::format("its files have {} tensors, and the index names {}", places.size(), map.size()));
  }

  // The names that are nearest to one that is not there.
  std::string known(const std::string& name) const {
    constexpr std::size_t kMost = 8;
    std::vector<std::pair<std::size_t, std::string_view>> near;
    near.reserve(tensors.size());
    for (const Info& t : tensors) near.emplace_back(changes_between(name, t.name), t.name);
    std::stable_sort(near.begin(), near.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (std::size_t i = 0; i < std::min(near.size(), kMost); ++i)
      text += fmt::format("{}\"{}\"", i > 0 ? ", " : "", near[i].second);
    return near.size() > kMost ? fmt::format("{} and {} more", text, near.size() - kMost) : text;
  }

  const Place& place_of(const std::string& name) const {
    const auto found = places.find(name);
    if (found == places.end())
      throw Error(fmt::format("there is no tensor \"{}\"; there are {}", name, known(name)));
    return found->second;
  }

  Tensor load(Context& context, const std::string& name, const Location& where) const {
    const Place& place = place_of(name);
    return formats::of_tensor(name, [&] {
      if (!place.entry.dtype)
        throw Error(
            fmt::format("it is {}, which no tensor here has: convert it before", place.entry.info.dtype));
      const Bytes elements =
          formats::part(place.file->bytes(), place.entry.begin, place.entry.bytes, "its elements");
      return formats::borrowed(
          context, {.dtype = *place.entry.dtype, .shape = place.entry.info.shape, .elements = elements},
          place.file, where);
    });
  }
};

Safetensors::Safetensors(const std::string& path, const Location& where) {
  formats::in_file("Safetensors", path, where, [&] {
    auto state = std::make_shared<State>();
    state->path = path;
    if (path.ends_with(formats::kIndexSuffix))
      state->add_index(path);
    else
      state->add(path);
    state_ = std::move(state);
  });
}

const List<Safetensors::Info>& Safetensors::tensors() const& { return state_->tensors; }
List<Safetensors::Info> Safetensors::tensors() && { return state_->tensors; }
bool Safetensors::contains(const std::string& name) const { return state_->places.count(name) > 0; }
const Metadata& Safetensors::metadata() const& { return state_->metadata; }
Metadata Safetensors::metadata() && { return state_->metadata; }

Tensor Safetensors::load(Context& context, const std::string& name, const Location& where) const {
  return formats::in_file("load", state_->path, where, [&] { return state_->load(context, name, where); });
}

NamedTensors load_safetensors(Context& context, const std::string& path, const Location& where) {
  NamedTensors out;
  try {
    const Safetensors file(path, where);
    out.reserve(file.tensors().size());
    for (const Safetensors::Info& t : file.tensors())
      out.push_back({t.name, file.load(context, t.name, where)});
  } catch (const Error& e) {
    detail::rename_error("load_safetensors", e);
  }
  return out;
}

}  // namespace tilewright
