// Views followed down to what they are views of.
#include "passes/graph/product_views.h"

#include "ir/op.h"

#include <algorithm>
#include <vector>

namespace tilewright::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;

namespace {

bool is_same_matrix(const Shape& a, const Shape& b) {
  if (a.rank() < 2 || b.rank() < 2) return false;
  return a[a.rank() - 1] == b[b.rank() - 1] && a[a.rank() - 2] == b[b.rank() - 2];
}

}  // namespace

bool is_view_of_all(const Node& n) {
  return n.op->kind == OpClass::reshape || n.op->kind == OpClass::transpose || n.op->kind == OpClass::expand;
}

MatrixView matrix_beneath(const Graph& graph, NodeId id) {
  MatrixView out{.source = id, .is_transposed = false};
  for (;;) {
    const Node& n = graph.node(out.source);
    if (!is_view_of_all(n)) return out;
    if (n.op->kind == OpClass::transpose) {
      const std::vector<Index>& perm = n.attrs.integers("perm");
      const auto rank = static_cast<Index>(perm.size());
      if (rank < 2) return out;
      const Index last = perm[perm.size() - 1], other = perm[perm.size() - 2];
      if (std::min(last, other) != rank - 2) return out;
      out.is_transposed = out.is_transposed != (last < other);
    } else if (!is_same_matrix(n.type.shape, graph.type(n.operands[0]).shape)) {
      return out;
    }
    out.source = n.operands[0];
  }
}

NodeId source_beneath(const Graph& graph, NodeId id) {
  for (;;) {
    const Node& n = graph.node(id);
    if (!is_view_of_all(n) && n.op->kind != OpClass::slice) return id;
    id = n.operands[0];
  }
}

}  // namespace tilewright::passes
