// Building, capturing and replaying graphs; see graph.h.
#include "backends/cuda/host/graph.h"

namespace tilewright::cuda {

Result<Graph> Graph::create(const Context& context) {
  api::CUgraph graph = nullptr;
  const Driver& driver = context.driver();
  if (auto status = check(driver, driver.graph_create(&graph, 0), "cuGraphCreate"); !status)
    return status.error();
  Graph made;
  made.graph_ = {driver, graph};
  made.context_ = context.get();
  return made;
}

Result<Graph> Graph::capture(const Context& context, const Stream& stream,
                             const std::function<Status()>& work) {
  const Driver& driver = context.driver();
  const auto began = driver.stream_begin_capture(stream.get(), api::kCaptureModeRelaxed);
  if (auto status = check(driver, began, "cuStreamBeginCapture"); !status) return status.error();
  const auto end = [&](api::CUgraph* graph) { return driver.stream_end_capture(stream.get(), graph); };
  Graph made;
  api::CUgraph graph = nullptr;
  Status worked = Unit{};
  try {
    worked = work();
  } catch (...) {
    // The stream must leave capture mode whatever happened, or it stays unusable.
    if (end(&graph) == api::kSuccess) made.graph_ = {driver, graph};
    throw;
  }
  const auto ended = end(&graph);
  if (graph != nullptr) made.graph_ = {driver, graph};
  if (!worked) return worked.error();
  if (auto status = check(driver, ended, "cuStreamEndCapture"); !status) return status.error();
  made.context_ = context.get();
  return made;
}

Result<GraphNode> Graph::add_launch(PreparedLaunch& launch, std::span<const GraphNode> after) {
  if (launch.shape().overlap_previous) {
    return failure(Failure::Kind::unsupported,
                   "a graph node with overlap_previous must be captured from a stream");
  }
  const Driver& driver = graph_.driver();
  GraphNode node = nullptr;
  const auto params = launch.node_params();
  const auto added = driver.graph_add_kernel_node(&node, graph_.get(), after.data(), after.size(), &params);
  if (auto status = check(driver, added, "cuGraphAddKernelNode"); !status) return status.error();
  for (const auto& attribute : launch.attributes()) {
    const auto set = driver.graph_kernel_node_set_attribute(node, attribute.id, &attribute.value);
    if (auto status = check(driver, set, "cuGraphKernelNodeSetAttribute"); !status) return status.error();
  }
  return node;
}

Result<GraphNode> Graph::add_fill(api::CUdeviceptr to, unsigned value, int element_bytes, std::size_t count,
                                  std::span<const GraphNode> after) {
  const Driver& driver = graph_.driver();
  GraphNode node = nullptr;
  const api::MemsetNodeParams params{.destination = to,
                                     .pitch = 0,
                                     .value = value,
                                     .element_size = static_cast<unsigned>(element_bytes),
                                     .width = count,
                                     .height = 1};
  const auto added =
      driver.graph_add_memset_node(&node, graph_.get(), after.data(), after.size(), &params, context_);
  if (auto status = check(driver, added, "cuGraphAddMemsetNode"); !status) return status.error();
  return node;
}

Result<GraphNode> Graph::add_copy(api::CUdeviceptr to, api::CUdeviceptr from, std::size_t size_bytes,
                                  std::span<const GraphNode> after) {
  const Driver& driver = graph_.driver();
  GraphNode node = nullptr;
  api::Copy3d params{};
  params.src_memory_type = api::kMemoryTypeDevice;
  params.src_device = from;
  params.dst_memory_type = api::kMemoryTypeDevice;
  params.dst_device = to;
  params.width_bytes = size_bytes;
  params.height = 1;
  params.depth = 1;
  const auto added =
      driver.graph_add_memcpy_node(&node, graph_.get(), after.data(), after.size(), &params, context_);
  if (auto status = check(driver, added, "cuGraphAddMemcpyNode"); !status) return status.error();
  return node;
}

Result<std::size_t> Graph::node_count() const {
  std::size_t count = 0;
  const Driver& driver = graph_.driver();
  const auto got = driver.graph_get_nodes(graph_.get(), nullptr, &count);
  if (auto status = check(driver, got, "cuGraphGetNodes"); !status) return status.error();
  return count;
}

Result<GraphExec> Graph::instantiate() const {
  const Driver& driver = graph_.driver();
  api::CUgraphExec exec = nullptr;
  const auto made = driver.graph_instantiate(&exec, graph_.get(), 0);
  if (auto status = check(driver, made, "cuGraphInstantiate"); !status) return status.error();
  GraphExec out;
  out.exec_ = {driver, exec};
  return out;
}

Status GraphExec::upload(api::CUstream stream) const {
  return check(exec_.driver(), exec_.driver().graph_upload(exec_.get(), stream), "cuGraphUpload");
}

Status GraphExec::set_launch(GraphNode node, PreparedLaunch& launch) const {
  const auto params = launch.node_params();
  const Driver& driver = exec_.driver();
  return check(driver, driver.graph_exec_kernel_node_set_params(exec_.get(), node, &params),
               "cuGraphExecKernelNodeSetParams");
}

}  // namespace tilewright::cuda
