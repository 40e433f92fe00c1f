// Algebra on graphs: dead nodes go, equal nodes merge, and a table of rewrites runs to a fixed point.
#pragma once

#include "ir/graph.h"
#include "ir/op.h"

#include <optional>
#include <span>
#include <string_view>

namespace tilewright::passes {

// The same function of the same inputs, all of them kept in order. Runs after differentiation: stop_gradient
// disappears. A rewrite may change how a result is rounded and, as in every reduction, the order of a sum;
// never what is NaN or infinite in exact arithmetic, nor the sign of a zero. Near the largest number of a
// type one order of a sum overflows where another does not: partial sums of what the rewrites of products
// choose are at most the reduced extent times as large as those written.
ir::Graph simplify(const ir::Graph& graph);

// What a rewrite sees: a node that is about to be added to the new graph.
struct Candidate {
  const ir::Op& op;
  std::vector<ir::Value> x;  // its operands
  const ir::Attrs& attrs;
  const ir::Type& type;
  const std::vector<int>& readers;  // of the new graph's nodes, as far as they were in the old one
  // Whether nothing but this node reads its operand `v`.
  bool is_read_once(ir::Value v) const {
    return static_cast<std::size_t>(v.id) < readers.size() && readers[static_cast<std::size_t>(v.id)] == 1;
  }
  bool is(const ir::Op& row) const { return &op == &row; }
};

struct Rewrite {
  std::string_view name;
  std::string_view doc;
  std::optional<ir::Value> (*apply)(const Candidate& node);  // the replacement, or empty
};

// All of them, in the order they are tried.
std::vector<std::span<const Rewrite>> rewrite_tables();

}  // namespace tilewright::passes
