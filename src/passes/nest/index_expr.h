// IndexExpr: where an element lies, as an expression of the loop variables: a constant plus multiples of
// variables and of floor divisions and remainders by constants. Views compose by building these;
// simplification uses the variables' ranges.
#pragma once

#include "base/inline_vector.h"

#include <tilewright/base/shape.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tilewright::passes {

// A number of a variable, an expression or a node as an index of a vector.
inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Variable v runs over [0, extents[v]).
using Extents = std::vector<Index>;

class IndexExpr {
 public:
  struct DivMod;
  struct Term {
    Index factor = 0;
    int variable = -1;                      // or
    std::shared_ptr<const DivMod> div_mod;  // a floor division or remainder
  };
  using Terms = InlineVector<Term, 2>;  // of the sums that a training step needs nine in ten have no more

  IndexExpr() = default;
  IndexExpr(Index constant) : constant_(constant) {}
  static IndexExpr variable(int v);

  Index constant() const { return constant_; }
  const Terms& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  bool is_affine() const;  // no division or remainder left
  // Divisions and remainders, each as often as it is written.
  std::size_t divisions() const;
  // The factor of variable v outside divisions.
  Index factor(int v) const;
  bool depends_on(int v) const;
  // The variable when the expression is exactly one variable, else -1.
  int single_variable() const;

  friend IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
  friend IndexExpr operator*(const IndexExpr& a, Index factor);
  friend IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) { return a + b * -1; }
  friend bool operator==(const IndexExpr& a, const IndexExpr& b);

 private:
  friend IndexExpr floor_div(const IndexExpr& a, Index divisor, const Extents& extents);
  friend IndexExpr remainder(const IndexExpr& a, Index divisor, const Extents& extents);
  void add(const Term& term);
  void join_parts();  // x / d * d + x % d is x
  Index constant_ = 0;
  Terms terms_;  // sorted, no zero factors, no repeats
};

struct IndexExpr::DivMod {
  bool is_division = true;
  IndexExpr inner;
  Index divisor = 1;
  std::size_t divisions = 1;  // itself and those inside
};

IndexExpr floor_div(const IndexExpr& a, Index divisor, const Extents& extents);
IndexExpr remainder(const IndexExpr& a, Index divisor, const Extents& extents);

struct IndexRange {
  Index low = 0;
  Index high = 0;  // inclusive
};
IndexRange range(const IndexExpr& a, const Extents& extents);

// Every variable replaced; `by(v)` gives its expression over the new variables, whose extents are given.
IndexExpr substitute(const IndexExpr& a, const std::function<IndexExpr(int)>& by, const Extents& extents);

std::string to_string(const IndexExpr& a);  // "3 + 4*i0 + (i1/8)"

// Row-major position of coordinates in `shape`, and coordinates of a position.
IndexExpr linearize(std::span<const IndexExpr> coordinates, const Shape& shape);
std::vector<IndexExpr> delinearize(const IndexExpr& position, const Shape& shape, const Extents& extents);

}  // namespace tilewright::passes
