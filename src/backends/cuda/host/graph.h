// CUDA graphs: a program of launches, fills and copies that replays as one call. Built node by node, or
// captured from a stream.
#pragma once

#include <functional>
#include <span>

#include "backends/cuda/host/launch.h"

namespace tilewright::cuda {

using GraphNode = api::CUgraphNode;

class GraphExec;

class Graph {
 public:
  static Result<Graph> create(const Context& context);
  // Runs `work`, which queues on `stream` (nothing executes), and returns it as a graph. `work` must not
  // synchronise.
  static Result<Graph> capture(const Context& context, const Stream& stream,
                               const std::function<Status()>& work);

  // Each node runs after the nodes in `after`; the driver copies arguments at this call. Cluster shapes are
  // kept; overlap_previous needs capture.
  Result<GraphNode> add_launch(PreparedLaunch& launch, std::span<const GraphNode> after);
  Result<GraphNode> add_fill(api::CUdeviceptr to, unsigned value, int element_bytes, std::size_t count,
                             std::span<const GraphNode> after);
  Result<GraphNode> add_copy(api::CUdeviceptr to, api::CUdeviceptr from, std::size_t size_bytes,
                             std::span<const GraphNode> after);
  Result<std::size_t> node_count() const;
  Result<GraphExec> instantiate() const;

 private:
  Owned<api::CUgraph, &Driver::graph_destroy> graph_;
  api::CUcontext context_ = nullptr;
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
  // Gives a launch node, of the graph this was instantiated from, the shape and arguments `launch` has now.
  // Replays that are under way keep the old ones.
  Status set_launch(GraphNode node, PreparedLaunch& launch) const;

 private:
  friend class Graph;
  Owned<api::CUgraphExec, &Driver::graph_exec_destroy> exec_;
};

}  // namespace tilewright::cuda
