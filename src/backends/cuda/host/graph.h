// CUDA graphs: launches, fills and copies captured from a stream, which replay as one call.
#pragma once

#include <functional>

#include "backends/cuda/host/launch.h"

namespace tilewright::cuda {

class GraphExec;

class CudaGraph {
 public:
  // Runs `work`, which queues on `stream` (nothing executes), and returns it as a graph. `work` must not
  // synchronise.
  static Result<CudaGraph> capture(const Context& context, const Stream& stream,
                                   const std::function<Status()>& work);
  Result<GraphExec> instantiate() const;

 private:
  Owned<api::CUgraph, &Driver::graph_destroy> graph_;
};

// An executable graph. One replay runs at a time: the driver orders a second one behind the first.
class GraphExec {
 public:
  Status launch(api::CUstream stream) const {
    const auto result = exec_.driver().graph_launch(exec_.get(), stream);
    return result == api::kSuccess ? Status(Unit{})
                                   : Status(driver_failure(exec_.driver(), result, "cuGraphLaunch"));
  }
  // Moves the graph's data to the device ahead of the first launch.
  Status upload(api::CUstream stream) const;

 private:
  friend class CudaGraph;
  Owned<api::CUgraphExec, &Driver::graph_exec_destroy> exec_;
};

}  // namespace tilewright::cuda
