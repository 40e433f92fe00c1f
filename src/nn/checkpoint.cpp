// Checkpoints as safetensors files with a checksum.
#include "nn/checkpoint_file.h"

#include "formats/in_file.h"
#include "formats/safetensors_writer.h"

#include <tilewright/base/hash.h>
#include <tilewright/nn/checkpoint.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::nn::detail {

namespace {

constexpr const char* kChecksum = "checksum";  // the key of the sum among the words

// What is summed up of a tensor.
struct Part {
  std::string name;
  DType dtype;
  Shape shape;
  Hash128 bytes;
};

std::string checksum_of(std::vector<Part> tensors, Metadata words) {
  std::sort(tensors.begin(), tensors.end(), [](const Part& a, const Part& b) { return a.name < b.name; });
  Hasher sum;
  for (const Part& t : tensors) sum.add(t.name).add(name(t.dtype)).add(to_string(t.shape)).add(t.bytes);
  std::sort(words.begin(), words.end());
  for (const auto& [key, value] : words)
    if (key != kChecksum) sum.add(key).add(value);
  return to_hex(sum.digest());
}

std::string checksum_of(const HostCopy& copy, const Metadata& words) {
  std::vector<Part> parts;
  parts.reserve(copy.entries().size());
  for (const HostCopy::Entry& e : copy.entries())
    parts.push_back({e.name, e.dtype, e.shape, hash_bytes(e.bytes.data(), e.bytes.size())});
  return checksum_of(std::move(parts), words);
}

// One tensor after another: there is no second copy of them all.
std::string checksum_of(const LoadedCheckpoint& loaded, const Location& where) {
  std::vector<Part> parts;
  parts.reserve(loaded.tensors.size());
  HostCopy one;
  for (const NamedTensor& t : loaded.tensors) {
    one.take_tensors({t}, where);
    const HostCopy::Entry& e = one.entries().front();
    parts.push_back({e.name, e.dtype, e.shape, hash_bytes(e.bytes.data(), e.bytes.size())});
  }
  return checksum_of(std::move(parts), loaded.words);
}

}  // namespace

void write_checkpoint(const std::string& path, const HostCopy& copy, const Metadata& words,
                      const Location& where) {
  formats::in_file("save_checkpoint", path, where, [&] {
    SafetensorsOptions options{.metadata = words};
    options.metadata.emplace_back(kChecksum, checksum_of(copy, words));
    std::vector<formats::Written> written;
    written.reserve(copy.entries().size());
    for (const HostCopy::Entry& e : copy.entries())
      written.push_back({e.name, e.dtype, e.shape, [&e] { return formats::KeptBytes{e.bytes, nullptr}; }});
    formats::write_safetensors(path, written, options);
  });
}

void save_checkpoint(const std::string& path, const NamedTensors& tensors, const Metadata& words,
                     const Location& where) {
  HostCopy copy;
  copy.take_tensors(tensors, where);
  write_checkpoint(path, copy, words, where);
}

LoadedCheckpoint load_checkpoint(Context& ctx, const std::string& path, const Location& where) {
  const Safetensors file(path, where);
  LoadedCheckpoint loaded;
  std::string saved;
  for (const auto& [key, value] : file.metadata())
    if (key == kChecksum)
      saved = value;
    else
      loaded.words.emplace_back(key, value);
  for (const Safetensors::Info& info : file.tensors())
    loaded.tensors.push_back({info.name, file.load(ctx, info.name, where)});
  if (saved.empty())
    throw Error(
        fmt::format("load_checkpoint: {} has no checksum: it is no checkpoint of Tilewright's, or was "
                    "written by something else; load_safetensors() reads its tensors",
                    path),
        where);
  if (const std::string now = checksum_of(loaded, where); now != saved)
    throw Error(fmt::format("load_checkpoint: {} is damaged: the checksum of what it holds is {}, and was {} "
                            "when it was saved; take an earlier one",
                            path, now, saved),
                where);
  return loaded;
}

std::string word_of(const Metadata& words, std::string_view key) {
  for (const auto& [own, value] : words)
    if (own == key) return value;
  return {};
}

}  // namespace tilewright::nn::detail
