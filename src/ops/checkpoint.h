// The marks of checkpoint(f) (include/tilewright/tensor/checkpoint.h): what a call of f takes and gives
// passes through one each, which is the value as it is. What lies between them is made again in front of what
// reads it behind the call (passes/plan/fit_memory.h).
#pragma once

#include "ir/op.h"

namespace tilewright::ops {

// A view whose attributes are `edge`, "in" or "out", and `call`, a number that tells calls apart.
extern const ir::Op kCheckpoint;
inline constexpr const char* kEdge = "edge";
// No kernel depends on it (passes/fuse/group_form.cpp): equal layers stay equal.
inline constexpr const char* kCall = "call";

enum class Edge : unsigned char { in, out };
ir::Value checkpoint_edge(ir::Value x, Edge edge, Index call);
// Whether a node is a checkpoint's mark of this kind.
bool is_edge(const ir::Node& node, Edge edge);

}  // namespace tilewright::ops
