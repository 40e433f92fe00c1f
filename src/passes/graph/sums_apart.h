// Sums over the batch of products whose operands are made of other products.
#pragma once

#include "ir/graph.h"

#include <optional>

namespace tilewright::passes {

// Where query heads share keys, the gradients of keys and values are sums over the heads of products with the
// scores. simplify() writes such a sum as one product whose depth holds the heads: best for scores that lie
// in memory. A kernel that computes the scores again walks the heads one after another in one program then,
// and skips no block that a mask leaves empty. This graph has a product for each head, in f32, and a sum of
// these that simplify() leaves alone (ops::kApart); nothing where there is no such sum.
std::optional<ir::Graph> with_sums_apart(const ir::Graph& graph);

}  // namespace tilewright::passes
