// Checkpoints: a tree of tensors and some words about it in one safetensors file, which PyTorch's readers
// open.
#pragma once

#include <tilewright/formats/safetensors.h>
#include <tilewright/tensor/tree.h>

#pragma GCC visibility push(default)
namespace tilewright::nn {

namespace detail {
void save_checkpoint(const std::string& path, const NamedTensors& tensors, const Metadata& words,
                     const Location& where);
struct LoadedCheckpoint {
  NamedTensors tensors;
  Metadata words;
};
LoadedCheckpoint load_checkpoint(Context& ctx, const std::string& path, const Location& where);
// The word of this key; empty where there is none.
std::string word_of(const Metadata& words, std::string_view key);
}  // namespace detail

// What a checkpoint holds: the tree, and the words that were saved with it.
template <class T>
struct Checkpoint {
  T tree;
  Metadata words;
  // The word of this key; empty where there is none.
  std::string word(std::string_view key) const { return detail::word_of(words, key); }
};

// Writes the tree's tensors by name, the words, and a checksum of all of them. The file is written beside,
// and takes its name when it is whole and on the disk: an old one stays until then. Throws Error where that
// fails.
template <class T>
  requires tilewright::detail::IsTree<T>
void save_checkpoint(const std::string& path, const T& tree, const Metadata& words = {},
                     const Location& where = Location::current()) {
  detail::save_checkpoint(path, named_tensors(tree), words, where);
}

// The tree of a checkpoint, in the form of `like`, on the Context's device. Throws Error where the file
// cannot be read, where its bytes are not those that were saved, and where names, shapes or types are not
// those of `like`: all that differ are listed.
template <class T>
  requires tilewright::detail::IsTree<T>
Checkpoint<T> load_checkpoint(Context& ctx, const std::string& path, const T& like,
                              const Location& where = Location::current()) {
  detail::LoadedCheckpoint loaded = detail::load_checkpoint(ctx, path, where);
  return {with_tensors(like, loaded.tensors, where), std::move(loaded.words)};
}

}  // namespace tilewright::nn
#pragma GCC visibility pop
