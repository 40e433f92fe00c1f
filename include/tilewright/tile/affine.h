// Affine: what can be told about an i64 scalar of a kernel without running it. Starts of blocks and bounds of
// loops are nearly always a constant plus multiples of program ids, loop indices and size parameters; the
// verifier, the cost model and the backends ask the same questions of them.
#pragma once

#include <tilewright/tile/kernel.h>

#include <map>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// constant + Σ factor · variable.
struct Affine {
  enum class Variable {
    program,  // index: grid axis
    loop,     // index: ValueId of a loop's induction variable
    scalar,   // index: scalar parameter
    opaque,   // index: ValueId of a scalar that is none of these
  };
  struct Term {
    Variable variable;
    int index;
    Index factor;  // not 0
    friend bool operator==(const Term&, const Term&) = default;
  };
  Index constant = 0;
  std::vector<Term> terms;  // sorted by variable, index

  bool is_constant() const { return terms.empty(); }    // without variables
  Index factor_of(Variable variable, int index) const;  // 0 when absent
  bool depends_on(Variable variable) const;             // on one of this kind, whatever its index
  friend bool operator==(const Affine&, const Affine&) = default;
};

// a + factor · b, empty on overflow.
std::optional<Affine> add_scaled(const Affine& a, const Affine& b, Index factor);

// What is known of a launch: everything with its scalar arguments, else the constants.
struct Known {
  std::vector<std::optional<Index>> grid;     // program counts
  std::vector<std::optional<Index>> scalars;  // i64 parameters
};
// What the kernel itself says, and what it says with these scalar arguments (as scalar_bits gives them).
Known known_statically(const Kernel& kernel);
Known known_at_launch(const Kernel& kernel, const std::vector<std::int64_t>& scalars);

// Values from `low` to `high`, both taken by some program or iteration.
struct Range {
  Index low = 0;
  Index high = 0;
};

// The affine form of every i64 scalar of a well-formed kernel.
class AffineTable {
 public:
  AffineTable(const Kernel& kernel, Known known);

  // The form of a scalar of the kernel; one that is not affine is an opaque variable.
  const Affine& of(ValueId scalar) const&;
  const Affine& of(ValueId scalar) && = delete;
  // Over all programs and iterations; empty when a variable's range is not known or there is no program.
  std::optional<Range> range(const Affine& affine) const;
  std::optional<Range> range_of(Affine::Variable variable, int index) const;
  std::optional<Index> trip_count(const Op& loop) const;
  // The loop of an induction variable.
  const Op& loop_of(ValueId induction) const& { return *loops_.at(induction); }
  const Op& loop_of(ValueId induction) && = delete;
  // What is known of the launch.
  const Known& known() const& { return known_; }
  Known known() && { return std::move(known_); }

 private:
  void visit(const Kernel& kernel, const Block& block);
  Affine form_of(const Kernel& kernel, const Op& op) const;
  Known known_;
  std::map<ValueId, Affine> forms_;
  std::map<ValueId, const Op*> loops_;  // by induction variable; points into the kernel
};

}  // namespace tilewright::tile
#pragma GCC visibility pop
