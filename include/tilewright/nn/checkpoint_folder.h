// A training's folder of checkpoints: the last few and the best, which outlive a process that is killed, a
// full disk and damaged files.
#pragma once

#include <tilewright/nn/checkpoint.h>
#include <tilewright/nn/host_copy.h>

#include <memory>
#include <optional>
#include <string>

#pragma GCC visibility push(default)
namespace tilewright::nn {

struct CheckpointFolderOptions {
  int keep_last = 2;  // checkpoints, beside the best; at least 1
};

struct CheckpointOptions {
  Metadata words = {};   // about the state: what load() gives back; "step" is among them of itself
  bool is_best = false;  // of all so far: it is kept until another is
};

// step-00000250.safetensors and so on, as save_checkpoint() writes them, and a text `manifest` that lists
// them. A checkpoint is one when the manifest says so, which is written last: whatever ends the process, the
// folder holds the ones before. What is dropped is removed after that. A checkpoint is written by a thread,
// from a copy; one at a time.
class CheckpointFolder {
 public:
  // Opens the folder, which is made where it is missing, and keeps other processes from writing into it.
  // Throws Error where it cannot be made, where another has it, and on a keep_last below 1.
  explicit CheckpointFolder(const std::string& path, const CheckpointFolderOptions& options = {},
                            const Location& where = Location::current());
  // Waits for the save under way. Its error is told by wait() alone.
  ~CheckpointFolder();
  CheckpointFolder(CheckpointFolder&&) noexcept;
  // Takes over the other's folder; the save under way into its own ends first.
  CheckpointFolder& operator=(CheckpointFolder&&) noexcept;

  // Saves the tree as it is now as the checkpoint of this step: returns when it is copied to the host's
  // memory, after the save before has ended. Checkpoints of this step and of later ones are replaced by it.
  // Throws Error where the save before it failed: what is in the folder is as it was before that one.
  template <class T>
    requires tilewright::detail::IsTree<T>
  void save(const T& tree, std::int64_t step, const CheckpointOptions& options = {},
            const Location& where = Location::current()) {
    wait();
    own_copy().take(tree, where);
    save_own_copy(step, options, where);
  }
  // The same of a copy that is there already; nobody changes it until wait() has returned.
  void save(std::shared_ptr<const HostCopy> copy, std::int64_t step, const CheckpointOptions& options = {},
            const Location& where = Location::current());
  // Until nothing is being written. Throws Error, with the line of the save, where the one under way failed.
  void wait();
  // The same where it has ended; waits for nothing.
  void check();

  // What load() gives.
  template <class T>
  struct Loaded {
    T tree;
    Metadata words;
    std::int64_t step = 0;
    std::string lost;  // what could not be read, a sentence; empty where nothing was lost
    // The word of this key; empty where there is none.
    std::string word(std::string_view key) const { return detail::word_of(words, key); }
  };
  // The newest checkpoint that is whole, in the form of `like`; nothing where there never was one. Those that
  // are newer, and cannot be read, are none from the next save on. Throws
  // Error where none that was saved can be read, and where it is another tree's: names, shapes and types that
  // differ are listed.
  template <class T>
    requires tilewright::detail::IsTree<T>
  std::optional<Loaded<T>> load(Context& ctx, const T& like, const Location& where = Location::current()) {
    auto found = load_newest(ctx, where);
    if (!found) return std::nullopt;
    return Loaded<T>{with_tensors(like, found->checkpoint.tensors, where), std::move(found->checkpoint.words),
                     found->step, std::move(found->lost)};
  }

  struct Entry {
    std::int64_t step = 0;
    std::string path;
    bool is_best = false;
  };
  // The checkpoints, oldest first; waits for the save under way.
  List<Entry> entries() const;

 private:
  struct Found {
    detail::LoadedCheckpoint checkpoint;
    std::int64_t step = 0;
    std::string lost;
  };
  std::optional<Found> load_newest(Context& ctx, const Location& where);
  HostCopy& own_copy();
  void save_own_copy(std::int64_t step, const CheckpointOptions& options, const Location& where);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
