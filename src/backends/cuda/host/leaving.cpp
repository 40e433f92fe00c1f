// Events behind the last work that may use what an owner keeps; see leaving.h.
#include "backends/cuda/host/leaving.h"

#include <utility>

namespace tilewright::cuda {

void Leaving::add(std::shared_ptr<void> owner, const Context& context, const Stream& stream) {
  auto event = Event::create(context);
  if (event && event->record(stream.get())) {
    waiting_.push_back({std::move(*event), std::move(owner)});
    return;
  }
  (void)stream.synchronize();  // no event is to be had: then by waiting
  done_.push_back(std::move(owner));
}

std::vector<std::shared_ptr<void>> Leaving::take_done() {
  std::vector<std::shared_ptr<void>> done = std::exchange(done_, {});
  while (!waiting_.empty()) {
    // A device that has failed answers every question with its failure, and runs nothing any more.
    if (const auto came = waiting_.front().launched.done(); came && !*came) break;
    done.push_back(std::move(waiting_.front().owner));
    waiting_.pop_front();
  }
  return done;
}

}  // namespace tilewright::cuda
