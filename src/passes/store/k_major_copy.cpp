// Finds the axis of memory that the depth walks, and moves it to the end.
#include "passes/store/k_major_copy.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/nest/dot_axes.h"
#include "passes/store/materialize_parts.h"
#include "passes/tiling/choose_dot_tiles.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/group_cost.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::Value;

namespace {

// The axis of contiguous memory whose neighbours are `stride` elements apart.
std::optional<Index> axis_of_stride(const Shape& shape, Index stride) {
  Index here = 1;
  for (int axis = shape.rank() - 1; axis >= 0; here *= shape[axis--])
    if (here == stride && shape[axis] > 1) return axis;
  return std::nullopt;
}

Index aligned_elements(const tile::MatrixUnit& unit, DType dtype) {
  return ceil_div(unit.blocks.align_bytes, static_cast<Index>(size_bytes(dtype)));
}

// `memory` with an axis innermost, as a view of its own shape; rows are filled up to whole `aligned`
// elements.
NodeId copy_by(Graph& graph, NodeId memory, Index axis, Index aligned) {
  const Value x{&graph, memory};
  const Index last = x.shape().rank() - 1, length = x.shape()[static_cast<int>(axis)];
  std::vector<Index> perm(static_cast<std::size_t>(last) + 1);
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  std::vector<Index> back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    back[static_cast<std::size_t>(perm[i])] = static_cast<Index>(i);
  Value transposed = ops::transpose(x, perm);
  const Index fill = round_up(length, aligned) - length;
  if (fill > 0) transposed = ops::pad_axis(transposed, last, 0, fill);
  const std::string dtype(name(x.dtype()));
  Value copy{&graph, graph.add(ops::kCast, {transposed.id}, {{"dtype", dtype}}, graph.node(memory).location)};
  if (fill > 0) copy = ops::slice_axis(copy, last, {.stop = length});
  return ops::transpose(copy, back).id;
}

// The unit that takes operands of these types, if it takes them by depth alone.
const tile::MatrixUnit* unit_k_major(const tile::Target& target, DType left, DType right) {
  for (const tile::MatrixUnit& unit : target.matrix_units)
    if (const tile::MatrixOperands* row = exact_operands(unit, left, right))
      return row->k_major ? &unit : nullptr;
  return nullptr;
}

// The product by vector units against that by a matrix unit with the copies before it.
bool is_worth_copying(const Graph& graph, const ir::Node& matmul, const std::vector<NodeId>& copied,
                      Index depth, const tile::Target& target) {
  const double flops = 2.0 * static_cast<double>(matmul.type.shape.size()) * static_cast<double>(depth);
  double seconds = flops / target.matrix_flops_per_s;
  for (NodeId memory : copied)
    seconds += target.launch_s + 2 * bytes_of(graph.type(memory)) / target.memory_bytes_per_s;
  return seconds < flops / target.flops_per_s;
}

}  // namespace

std::vector<NodeId> copy_k_major(Graph& graph, const ir::Node& matmul, std::vector<NodeId> operands,
                                 const tile::Target& target) {
  const DType left = graph.type(operands[0]).dtype, right = graph.type(operands[1]).dtype;
  const tile::MatrixUnit* unit = unit_k_major(target, left, right);
  if (unit == nullptr || matmul.type.shape.size() == 0) return operands;
  const auto nest = program_of(graph, matmul, operands);
  if (!nest) return operands;
  const DotAxes axes = dot_axes(*nest);
  const Expr& dot = nest->exprs[static_cast<std::size_t>(nest->dot())];
  std::vector<NodeId> changed = operands, copied;
  for (std::size_t side : {0, 1}) {
    const Expr& s = nest->exprs[static_cast<std::size_t>(dot.operands[side])];
    if (s.kind != Expr::Kind::load || axes.k < 0 || !s.offset.is_affine()) return operands;
    const Index stride = s.offset.factor(axes.k);
    if (stride == 1) continue;
    const NodeId memory = memory_of(graph, operands[side]);
    const auto axis = axis_of_stride(graph.type(memory).shape, stride);
    if (!axis) return operands;
    changed[side] = view_of(graph, operands[side], memory,
                            copy_by(graph, memory, *axis, aligned_elements(*unit, s.dtype)));
    copied.push_back(memory);
  }
  const Index depth = graph.type(operands[0]).shape[graph.type(operands[0]).shape.rank() - 1];
  if (copied.empty() || !is_worth_copying(graph, matmul, copied, depth, target)) return operands;
  // What is computed need not be stored: in a back-to-back matmul it comes from registers.
  const bool computed = graph.node(memory_of(graph, operands[0])).op->kind != ir::OpClass::input;
  const auto after = program_of(graph, matmul, changed);
  return after && (computed || dot_on_matrix_unit(*after, target)) ? changed : operands;
}

}  // namespace tilewright::passes
