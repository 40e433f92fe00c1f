// Rewrites of masks: a product whose rows or columns are chosen from needs no choice among its operand's
// rows.
#include "passes/graph/simplify_parts.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

using ir::Value;
using Replacement = std::optional<Value>;

std::vector<Index> beyond_units(const Shape& shape) {
  std::vector<Index> extents = shape.extents();
  std::erase(extents, 1);
  return extents;
}

// A condition before it is stretched, and what it is computed from: apart from unit axes they are the same.
struct Chooser {
  Shape shape;
  Value root;
};

Chooser chooser_of(Value condition) {
  if (is_a(condition, ops::kExpand)) condition = operand_of(condition);
  Value root = condition;
  while ((is_a(root, ops::kReshape) || is_a(root, ops::kTranspose)) &&
         beyond_units(operand_of(root).shape()) == beyond_units(root.shape()))
    root = operand_of(root);
  return {condition.shape(), root};
}

// Whether `condition`, viewed at `shape`, is any(mask) over each row.
bool is_any_of_row(const Chooser& mask, const Shape& shape, Value condition) {
  if (!is_a(condition, ops::kAny)) return false;
  const Value rows = operand_of(condition);
  Shape of_rows = rows.shape();
  const int last = of_rows.rank() - 1;
  if (node_of(condition).attrs.integers("axes") != std::vector<Index>{last}) return false;
  of_rows[last] = 1;
  return of_rows == shape && rows.shape() == mask.shape && same(chooser_of(rows).root, mask.root);
}

// Whether a product's `mask` holds only where the condition does that is `root`, viewed at `shape`.
bool implies(Value mask, const Shape& shape, Value root) {
  const Chooser chosen = chooser_of(mask);
  if (chosen.shape == shape && same(chosen.root, root)) return true;
  if (is_any_of_row(chosen, shape, root)) return true;
  if (is_a(mask, ops::kExpand)) mask = operand_of(mask);
  if (!is_a(mask, ops::kBitAnd)) return false;
  return implies(operand_of(mask, 0), shape, root) || implies(operand_of(mask, 1), shape, root);
}

// A product's operand whose rows (columns of the second one) are chosen by what the mask of the product
// implies, without that choice. Between the two are views that leave matrices, and the first batch axis, as
// they are.
Replacement without_choice(Value operand, Value mask, bool of_columns) {
  std::vector<Value> views;
  Value v = operand;
  const int rank = v.shape().rank();
  if (of_columns && is_a(v, ops::kTranspose)) {
    const std::vector<Index>& order = node_of(v).attrs.integers("perm");
    for (int i = 0; i < rank; ++i)
      if (order[static_cast<std::size_t>(i)] != (i < rank - 2 ? i : 2 * rank - 3 - i)) return {};
    views.push_back(v);
    v = operand_of(v);
    of_columns = false;
  }
  const auto keeps_matrices = [&](Value view) {
    if (!is_a(view, ops::kReshape) && !is_a(view, ops::kExpand)) return false;
    const Shape &to = view.shape(), &from = operand_of(view).shape();
    if (from.rank() < 3 || to.rank() < 3) return false;
    return to[0] == from[0] && to[to.rank() - 1] == from[from.rank() - 1] &&
           to[to.rank() - 2] == from[from.rank() - 2];
  };
  while (keeps_matrices(v)) {
    views.push_back(v);
    v = operand_of(v);
  }
  if (!is_a(v, ops::kWhere) || !is_number(operand_of(v, 2), 0)) return {};
  const Chooser chosen = chooser_of(operand_of(v));
  const int last = chosen.shape.rank() - 1;
  if (last < 1 || chosen.shape[of_columns ? last - 1 : last] != 1) return {};
  for (int i = 1; i < last - 1; ++i)
    if (chosen.shape[i] != 1 && !views.empty()) return {};
  // The condition at the axes of the product: along its rows, or along its columns.
  const bool along_columns = of_columns || (!views.empty() && is_a(views[0], ops::kTranspose));
  const Index count = chosen.shape[of_columns ? last : last - 1];
  std::vector<Index> at(static_cast<std::size_t>(rank), 1);
  for (int i = 0; i < last - 1; ++i)
    if (chosen.shape[i] != 1) at[static_cast<std::size_t>(i)] = chosen.shape[i];
  at[static_cast<std::size_t>(along_columns ? rank - 1 : rank - 2)] = count;
  if (!implies(mask, Shape(at), chosen.root)) return {};
  Value whole = operand_of(v, 1);
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    whole = {whole.graph, whole.graph->add(*node_of(*view).op, {whole.id}, node_of(*view).attrs)};
  return whole;
}

// where(c, matmul(where(c, a, 0), b), z): the rows that the inner choice makes zeros are not read of the
// product.
Replacement unmasked_rows(const Candidate& n) {
  if (!n.is(ops::kWhere)) return {};
  Value product = n.x[1];
  std::optional<Value> factor;
  if (is_a(product, ops::kMul) && n.is_read_once(product) && constant_of(operand_of(product, 1))) {
    factor = operand_of(product, 1);
    product = operand_of(product);
  }
  if (!is_a(product, ops::kMatmul) || !n.is_read_once(product)) return {};
  const Value a = operand_of(product), b = operand_of(product, 1);
  const Replacement rows = without_choice(a, n.x[0], /*of_columns=*/false),
                    columns = without_choice(b, n.x[0], /*of_columns=*/true);
  if (!rows && !columns) return {};
  ir::Graph& graph = *product.graph;
  Value plain{&graph,
              graph.add(ops::kMatmul, {rows.value_or(a).id, columns.value_or(b).id}, node_of(product).attrs)};
  if (factor) plain = ops::mul(plain, *factor);
  return ops::where(n.x[0], plain, n.x[2]);
}

constexpr Rewrite kMaskRewrites[] = {
    {"unmasked_rows",
     "where(c, matmul(where(c, a, 0), b) * s, z) = where(c, matmul(a, b) * s, z) for c of rows, likewise of "
     "b's "
     "columns",
     unmasked_rows},
};

}  // namespace

std::span<const Rewrite> mask_rewrites() { return kMaskRewrites; }

}  // namespace tilewright::passes
