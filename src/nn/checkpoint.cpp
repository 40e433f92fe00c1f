// Checkpoints as safetensors files with a checksum.
#include <tilewright/base/hash.h>
#include <tilewright/nn/checkpoint.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::nn::detail {

namespace {

constexpr const char* kChecksum = "checksum";  // the key of the sum among the words

// Sums up names, types, shapes and bytes of all tensors, and the words.
std::string checksum_of(const NamedTensors& tensors, const Metadata& words, const Location& where) {
  std::vector<const NamedTensor*> by_name;
  for (const NamedTensor& t : tensors) by_name.push_back(&t);
  std::sort(by_name.begin(), by_name.end(),
            [](const NamedTensor* a, const NamedTensor* b) { return a->name < b->name; });
  Hasher sum;
  std::vector<std::byte> bytes;
  for (const NamedTensor* t : by_name) {
    const DType dtype = t->tensor.dtype(where);
    bytes.resize(static_cast<std::size_t>(t->tensor.size()) * size_bytes(dtype));
    t->tensor.read(bytes.data(), dtype, where);
    sum.add(t->name).add(name(dtype)).add(to_string(t->tensor.shape()));
    sum.add(hash_bytes(bytes.data(), bytes.size()));
  }
  Metadata sorted = words;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [key, value] : sorted)
    if (key != kChecksum) sum.add(key).add(value);
  return to_hex(sum.digest());
}

}  // namespace

void save_checkpoint(const std::string& path, const NamedTensors& tensors, const Metadata& words,
                     const Location& where) {
  SafetensorsOptions options{.metadata = words};
  options.metadata.emplace_back(kChecksum, checksum_of(tensors, words, where));
  save_safetensors(path, tensors, options, where);
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
  if (const std::string now = checksum_of(loaded.tensors, loaded.words, where); now != saved)
    throw Error(fmt::format("load_checkpoint: {} is damaged: the checksum of what it holds is {}, and was {} "
                            "when it was saved; take an earlier one",
                            path, now, saved),
                where);
  return loaded;
}

}  // namespace tilewright::nn::detail
