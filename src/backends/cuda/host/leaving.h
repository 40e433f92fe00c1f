// Owners of borrowed memory whose last user here is gone: each is let go when the work that was launched by
// then is done, without anybody waiting for it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/cuda/host/context.h"

namespace tilewright::cuda {

// Owners that wait for the work of one stream. One thread at a time may use it.
class Leaving {
 public:
  // `owner` is one of take_done() once all work launched on `stream` so far is done.
  void add(std::shared_ptr<void> owner, const Context& context, const Stream& stream);
  std::vector<std::shared_ptr<void>> take_done();

 private:
  struct Waiting {
    Event launched;
    std::shared_ptr<void> owner;
  };
  std::deque<Waiting> waiting_;  // in the order of the stream
  std::vector<std::shared_ptr<void>> done_;
};

}  // namespace tilewright::cuda
