// The row of checkpoint's marks.
#include "ops/checkpoint.h"

#include "ops/row_parts.h"

namespace tilewright::ops {

namespace {

std::string text_of(Edge edge) { return edge == Edge::in ? "in" : "out"; }

Type infer_edge(Types operands, const Attrs& attrs) {
  const std::string& edge = attrs.text(kEdge);
  if (edge != text_of(Edge::in) && edge != text_of(Edge::out))
    throw Error(fmt::format("checkpoint: edge is '{}', and must be 'in' or 'out'", edge));
  (void)attrs.integer(kCall);
  return operands[0];
}

}  // namespace

constexpr ir::Op kCheckpoint =
    checked({.name = "checkpoint",
             .arity = 1,
             .kind = OpClass::reshape,
             .doc = "a, which goes into, or comes out of (`edge`), the checkpointed function's call `call`.",
             .infer = infer_edge,
             .eval = [](HostTensors x, const Attrs&, const Type&) { return *x[0]; },
             .vjp = [](Args, const Attrs&, Value, Value g) -> Grads { return {g}; },
             .lower = structural});

Value checkpoint_edge(Value x, Edge edge, Index call) {
  return {x.graph, x.graph->add(kCheckpoint, {x.id}, {{kEdge, text_of(edge)}, {kCall, call}})};
}

bool is_edge(const ir::Node& node, Edge edge) {
  return node.op == &kCheckpoint && node.attrs.text(kEdge) == text_of(edge);
}

}  // namespace tilewright::ops
