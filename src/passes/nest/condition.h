// Condition: where in a program's iteration space something holds, as far as positions and loaded integers
// say: comparisons of sums of these under "and" and "or". Masks become these.
#pragma once

#include "passes/nest/loop_nest.h"

#include <vector>

namespace tilewright::passes {

struct Condition {
  enum class Kind : std::uint8_t {
    never,
    always,
    unknown,       // may hold and may not
    not_positive,  // expression + Σ factor * (the value of expr) <= 0
    both,
    either,
  };
  // What a value differs along: nothing inside a program, its rows, or what its loop walks.
  enum class Along : std::uint8_t { nothing, rows, walked };
  struct Value {
    int expr = -1;  // an integer, or a bool as 0 and 1
    Index factor = 1;
    Along along = Along::nothing;
    friend bool operator==(const Value&, const Value&) = default;
  };
  Kind kind = Kind::unknown;
  IndexExpr expression;
  std::vector<Value> values;
  bool summed = false;  // values were added up, in arithmetic that may wrap around, before they were compared
  bool of_vectors() const;  // of any value that differs inside a program
  std::vector<Condition> parts;
  friend bool operator==(const Condition&, const Condition&) = default;
};

Condition both(Condition a, Condition b);
Condition either(Condition a, Condition b);
Condition negated(const Condition& c);
// Whether b holds wherever a does, as far as single comparisons tell: of equal sums the one that is compared
// with less implies the other.
bool implies(const Condition& a, const Condition& b);

// An integer: a sum of positions, and of multiples of values.
struct Linear {
  IndexExpr expression;
  std::vector<Condition::Value> values;
  bool summed = false;  // as a Condition's
};
// What the comparison `op` says of two integers whose difference this is.
Condition compared(const ir::Op& op, const Linear& difference, const Extents& extents);
// `c` at any value of the reduced variables: what it says about them is forgotten.
Condition without_reduced(const Condition& c, const LoopNest& nest);

// What a bool expr says.
Condition condition_of(const ir::Graph& graph, const LoopNest& nest, int expr);

// The condition under which an expr may differ from `value`. A product with zero is zero, and what -inf is
// added to stays -inf: of what a mask takes out not even NaNs are seen.
Condition may_differ(const ir::Graph& graph, const LoopNest& nest, int expr, tile::Number value);

// The condition under which blocks of a loop change what its reductions and dots give, and these are used.
Condition needed(const ir::Graph& graph, const LoopNest& nest, const std::vector<int>& reductions);

}  // namespace tilewright::passes
