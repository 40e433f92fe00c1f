// safetensors: tensors by name behind a JSON header, in one file or in several with an index.
// https://github.com/huggingface/safetensors#format
#pragma once

#include <tilewright/tensor/named_tensor.h>

#include <utility>

#pragma GCC visibility push(default)
namespace tilewright {

using Metadata = List<std::pair<std::string, std::string>>;

// An opened file, or several with their index (….safetensors.index.json). Headers are read and checked when
// it is opened; elements when they are looked at: the files are mapped, and stay as long as a tensor of
// theirs or this does. May be used from several threads, each with a Context of its own or one Context as its
// rules are. A file that is shortened in place meanwhile ends a process that reads it; replacing it, as
// save_safetensors() does, is harmless.
class Safetensors {
 public:
  // Throws Error naming the file, and the tensor where it is about one: a file that cannot be read or is cut
  // short, a header that is longer than the file or no such JSON, names twice, a type that the format does
  // not know, sizes that no memory has or that are not those of the bytes, bytes that two tensors share or
  // that no tensor has; of an index, a shard outside its folder, and one that lacks a tensor.
  explicit Safetensors(const std::string& path, const Location& where = Location::current());

  struct Info {
    std::string name;
    std::string dtype;  // as the file says: "F32", "BF16", and those that tensors do not have: "U16"
    Shape shape;
  };
  // What tensors it has, by where they lie, shard after shard.
  const List<Info>& tensors() const&;
  List<Info> tensors() &&;
  bool contains(const std::string& name) const;  // whether it has a tensor of this name
  // "__metadata__" of the file, or of the first shard; sorted by key.
  const Metadata& metadata() const&;
  Metadata metadata() &&;

  // The tensor on the Context's device. On the CPU it is the file's own memory, without a copy, where it lies
  // at a multiple of an element's size, as in every file that was written with care; elements are read-only
  // (Access::read_only). Throws Error: there is none of the name (the nearest are listed), or tensors have no
  // such type (I16, U16, U32, U64, C64, and 8-bit floats but F8_E4M3 and F8_E5M2).
  Tensor load(Context& context, const std::string& name, const Location& where = Location::current()) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// All tensors of a file or of an index, as Safetensors gives them.
NamedTensors load_safetensors(Context& context, const std::string& path,
                              const Location& where = Location::current());

struct SafetensorsOptions {
  Metadata metadata = {};
  // Most bytes of elements in one file, but for a tensor that is larger alone. More go into several:
  // "m.safetensors" becomes m-00001-of-00003.safetensors …, and m.safetensors.index.json. 0: one file.
  std::uint64_t shard_bytes = 0;
};

// Elements begin at a multiple of 256 bytes, the widest types first, so that each tensor can be used as it
// lies on the CPU. Every file is written beside, and takes its name when all are whole and on the disk, the
// index last: where that fails, an Error says why, and what was there before is unchanged. Throws Error for a
// name or key that is there twice or is not UTF-8, and for the name "__metadata__".
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const SafetensorsOptions& options = {}, const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
