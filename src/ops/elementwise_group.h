// Pointwise ops of one element count, evaluated together in blocks that stay in the cache: the oracle's speed
// on large tensors comes from not writing what lies between.
#pragma once

#include "ir/op.h"

#include <functional>
#include <vector>

namespace tilewright::ops {

// Ops whose element n depends on element n of the operands only.
bool is_elementwise(const ir::Op& op);

struct ElementwiseGroup {
  Index count = 0;                 // elements of each of its values
  std::vector<ir::NodeId> nodes;   // in topological order
  std::vector<ir::NodeId> stored;  // those of `nodes` that others read
};

// `value(id)`: the whole value of a node outside the group; results[i] receives stored[i]. Uses the CPUs of
// the process when the group is large.
void evaluate_group(const ir::Graph& graph, const ElementwiseGroup& group,
                    const std::function<const ir::HostTensor&(ir::NodeId)>& value,
                    std::vector<ir::HostTensor>& results);

}  // namespace tilewright::ops
