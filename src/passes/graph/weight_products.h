// Which products of a graph are those of its weights: what a precision of 8 bits multiplies in 8 bits.
#pragma once

#include "ir/graph.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tilewright::passes {

// What a product of a weight is.
struct WeightProduct {
  enum class Kind : std::uint8_t {
    forward,         // y = x · w
    input_gradient,  // dx = dy · wᵀ
    weight_gradient  // dw = xᵀ · dy
  };
  Kind kind = Kind::forward;
  std::size_t side = 1;  // of its two operands the weight; of a weight's gradient x
  // The only reader of a weight's gradient of a batch, which sums the batch axes: both are written as one.
  const ir::Node* sum = nullptr;
};

// A weight is an input of the graph, or a slice of one, that one operand of an f32 product is a matrix of
// (product_views.h), where the other operand's rows are the product's. Not counted are weights that a product
// with a result type by name reads (the logits of a loss, whose rounding is the loss's; scores of attention),
// tables that rows are gathered from (embeddings, and so a head that is tied to one), and products of what
// was gathered, which may hold anything in rows that nobody uses. So attention's products, both of whose
// operands are computed, are none either, nor are those of groups.
class WeightProducts {
 public:
  explicit WeightProducts(const ir::Graph& graph);
  // What the product is; null of another node.
  const WeightProduct* find(const ir::Node& node) const;
  // The product whose `sum` the node is; null of another node.
  const WeightProduct* find_summed(const ir::Node& node) const;

 private:
  struct Extents {
    Index rows = 0, columns = 0;
  };
  void set_apart(const ir::Graph& graph, const ir::Node& n);
  bool add_weight_gradient(const ir::Graph& graph, const ir::Node& n, const std::vector<ir::NodeId>& users);
  void add_product(const ir::Graph& graph, const ir::Node& n);
  std::unordered_map<const ir::Node*, WeightProduct> products_, by_sum_;
  std::unordered_set<ir::NodeId> apart_;                             // sources that are not counted
  std::unordered_map<ir::NodeId, bool> contracted_;                  // by weight: its last axis, forward
  std::unordered_map<ir::NodeId, std::vector<Extents>> multiplied_;  // by x, the weights
};

}  // namespace tilewright::passes
