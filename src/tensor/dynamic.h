// Dynamic dimensions: programs of one function at several sizes that share their kernels.
#pragma once

#include "tensor/size_family.h"
#include "tensor/trace.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

// The same dimensions, with axes from 0. Throws Error when an entry names no dimension of the arguments, or
// two name one.
std::vector<DynamicDim> with_axes_from_0(const std::vector<DynamicDim>& dynamic,
                                         const std::vector<ir::Type>& arguments, const Location& where);

// The function as it is recorded for arguments of some types.
struct TracedAt {
  explicit TracedAt(const Trace& trace);
  TracedAt(ir::Graph g, std::vector<Tensor> c, std::vector<std::size_t> d, std::vector<PendingCheck> p)
      : graph(std::move(g)), captured(std::move(c)), draws(std::move(d)), checks(std::move(p)) {}
  ir::Graph graph;
  std::vector<Tensor> captured;      // what it uses beside its arguments
  std::vector<std::size_t> draws;    // which of the graph's inputs are seeds
  std::vector<PendingCheck> checks;  // what the last outputs of the graph tell
  // Whether both use the same tensors, draw and check as often.
  bool uses_what(const TracedAt& other, std::size_t arguments) const;
};
using TraceAt = std::function<TracedAt(const std::vector<ir::Type>& arguments)>;

// The function's graphs at sizes that nobody called it with, to compare with the graph at `arguments`: those
// of a function that does not read shapes.
SizeFamily::Others imagined_sizes(const TraceAt& trace_at, const std::vector<ir::Type>& arguments,
                                  const std::vector<DynamicDim>& dynamic);
// Whether arguments differ in dynamic dimensions alone.
bool are_alike(const std::vector<ir::Type>& a, const std::vector<ir::Type>& b,
               const std::vector<DynamicDim>& dynamic);

// A program for `graph` with kernels that take as arguments what changes with the dynamic dimensions, found
// by comparing with the function's graphs at other sizes. `how` says what came of it; where the sizes need
// kernels of their own, the reason, and there is no program.
std::shared_ptr<CompiledGraph> compile_for_sizes(DeviceState& device, const ir::Graph& graph,
                                                 const SizeFamily::Others& others,
                                                 const GraphOptions& options, std::string& how);

}  // namespace tilewright::detail
