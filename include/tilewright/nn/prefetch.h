// Batches made ahead on a thread of their own, while the device works on the ones before.
#pragma once

#include <tilewright/nn/batches.h>

#include <cstdint>
#include <functional>
#include <memory>

#pragma GCC visibility push(default)
namespace tilewright::nn {

struct PrefetchOptions {
  std::uint64_t first = 0;  // the number of the first batch: the step at which a training is taken up
  int ahead = 2;            // batches that may wait to be taken
};

// A batch, and how long next() waited for it: where that is a good part of a step, the loader is what is
// slow.
struct PrefetchedBatch {
  Batch batch;
  std::uint64_t number = 0;
  double waited_s = 0;
};

class Prefetch {
 public:
  // `make` gives a batch by its number. It is called on another thread, one call at a time, with the numbers
  // in order; what it uses must stay, and allow that. Throws Error where `ahead` is below 1.
  explicit Prefetch(std::function<Batch(std::uint64_t number)> make, const PrefetchOptions& options = {},
                    const Location& where = Location::current());
  // Waits for the batch that is being made; those that nobody took are dropped.
  ~Prefetch();
  Prefetch(Prefetch&& from) noexcept;
  // The next batch. What `make` threw is thrown here in its batch's place, and at every call after.
  PrefetchedBatch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
