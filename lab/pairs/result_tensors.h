// Contenders whose results are tensors of ours: how the harness poisons, reads and finds them.
#pragma once

#include <tilewright/tensor/out_of_memory.h>
#include <tilewright/tensor/tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "harness/run/workload.h"

namespace tilewright::lab {

// What the contender's last call left, and the next one writes to.
using ResultTensors = std::shared_ptr<std::vector<Tensor>>;

// Memory for each output, which stays.
ResultTensors placed_results(Context& context, const std::vector<OutputSpec>& outputs);

// Gives the contender access to so many outputs, which lie in `results`; `ensure` runs before they are
// poisoned, to make those that no call has made yet.
void add_outputs(Contender& contender, const ResultTensors& results, std::size_t count,
                 const std::function<void()>& ensure = {});

// What f() throws, as a Failure.
template <class F>
Status guarded(F&& f) {
  try {
    f();
    return Unit{};
  } catch (const OutOfMemory& error) {
    return failure(Failure::Kind::out_of_memory, error.what());
  } catch (const Error& error) {
    return failure(Failure::Kind::device, error.what());
  }
}

}  // namespace tilewright::lab
