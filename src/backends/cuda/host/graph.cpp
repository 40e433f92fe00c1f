// Capturing and replaying graphs; see graph.h.
#include "backends/cuda/host/graph.h"

namespace tilewright::cuda {

Result<CudaGraph> CudaGraph::capture(const Context& context, const Stream& stream,
                                     const std::function<Status()>& work) {
  const Driver& driver = context.driver();
  const auto began = driver.stream_begin_capture(stream.get(), api::kCaptureModeRelaxed);
  if (auto status = check(driver, began, "cuStreamBeginCapture"); !status) return status.error();
  const auto end = [&](api::CUgraph* graph) { return driver.stream_end_capture(stream.get(), graph); };
  CudaGraph made;
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
  return made;
}

Result<GraphExec> CudaGraph::instantiate() const {
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

}  // namespace tilewright::cuda
