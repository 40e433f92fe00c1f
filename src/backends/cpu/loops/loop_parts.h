// LoopState: one part of an element loop while its text is written. LoopParts: what every class that writes
// some of it knows.
#pragma once

#include "backends/cpu/loops/joined_rows.h"
#include "backends/cpu/loops/loop_shape.h"
#include "backends/cpu/loops/row_walks.h"
#include "backends/cpu/text/prims.h"

#include <map>
#include <string>
#include <vector>

namespace tilewright::cpu {

// The part of the vectors' axis along which an access has elements.
struct LoopWindow {
  std::string begin, end;                   // texts; empty: the loop's own
  std::vector<std::string> row_conditions;  // that this row exists
  std::vector<std::string> all_rows;        // that every row does
  bool any() const { return !begin.empty() || !end.empty() || !row_conditions.empty(); }
};
struct LoopNode {
  bool along_vec = false, along_other = false;  // what its value changes with
  std::string text;  // scalar: the expression or name; vector: the name, before the copy's number
  std::optional<tile::Number> number;  // scalar: whose literal the text is
  std::string total;                   // of a sum in blocks: the f64 that these are added to
  int uses = 0;                        // by instructions of this part
  int consumer = -1;                   // the one instruction that uses it
  int operations = 1;                  // in its expression, with what is written inside it
  bool in_place = false;               // written inside its consumer's expression instead of having a name
  bool in_mad = false;                 // inside a multiply-add, whose product it is
  bool needed = false;                 // someone reads its lanes, not only where they begin to count
  bool always = false;  // a comparison that holds for every element that is visited: the axis ends with it
  Access access;
  BesideRows lies = BesideRows::along;  // where rows are walked as one
  Amount row_step = 0;                  // of what lies by_row
  std::string base;                     // pointer to the access' first element
  std::string pointer;                  // to the row's first element
  LoopWindow window;
  std::string row_end;      // where `window` depends on the row: its end in this row
  bool streams = false;     // a store past the caches, where the row is aligned
  std::string stream_test;  // variable that says whether the row is aligned; empty: it always is
};
// One pass over the body: how many vectors, whether lanes may be missing.
struct LoopPass {
  int copies = 1;
  Index apart = 0;  // elements from one copy to the next; 0: a vector
  bool masked = false;
  std::string index;                         // of the first vector's first lane
  std::string steps;                         // the same, counted from where the walk begins
  std::map<std::string, std::string> masks;  // window → variable
  std::string words;                         // the last block of random words
};

// Additions one after another to an f32: each rounds, and of terms that are alike many in one direction, so
// that the error grows with their number (0.1 added up 512 times: 4e-6 of the sum; 64 times 2e-7, 32 times
// less than 1e-7). More than these go in blocks of half as many, whose sums are added up in f64.
inline constexpr Index kLongestChain = 64, kChainOfBlock = 32;

struct LoopState {
  LoopState(KernelText& kernel, LoopPart loop_part, RowWalk row_walk);

  KernelText& k;
  LoopPart part;
  LoopShape shape;
  std::vector<LoopNode> nodes;    // by instruction
  Amount vec_count, other_count;  // numbers, or variables where the loop is trimmed
  RowWalk walk;
  bool is_ragged = false;    // the count is not known to be a whole number of vectors
  bool has_vectors = false;  // something changes along the vectors' axis
  std::string vec;           // the variables of the two axes
  std::string row;
};

class LoopParts {
  LoopState& state_;

 protected:
  using Instr = printer::Instr;
  using Node = LoopNode;
  using Window = LoopWindow;
  using Pass = LoopPass;

  explicit LoopParts(LoopState& s) : state_(s) {}

  LoopNode& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }
  const LoopNode& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  const Instr& instr(int i) const { return part_.at(i); }
  DType dtype_of(const printer::Ref& ref) const;
  std::string at(const Pass& pass, int copy) const;
  std::string copy_name(const std::string& name, int copy, const Pass& pass) const;
  bool is_ragged() const { return is_ragged_; }
  bool is_writing(int i) const {
    return instr(i).kind != Instr::Kind::compute && instr(i).kind != Instr::Kind::reload;
  }
  // Instructions that are printed together: all, or those that change along the other axis, or do not.
  enum class Which : unsigned char { all, not_along_other, along_other };
  bool is_of(int i, Which which) const {
    return which == Which::all || is_inner(i) == (which == Which::along_other);
  }
  bool is_inner(int i) const { return node(i).along_other || is_writing(i); }
  // What nobody uses, the condition of a known choice for instance.
  bool is_unused(int i) const { return !is_writing(i) && node(i).uses == 0; }
  // A selection whose condition always holds is its first choice.
  bool is_known_choice(int i) const;
  bool is_passed_through(int i) const { return is_known_choice(i) && node(i).uses == 1; }
  static bool applies(const Instr& i, tile::Prim prim);
  static bool is_accumulating(const Instr& i);
  bool is_in_blocks(int i) const;
  bool has_blocks() const;
  std::string mask(const Node& n, Pass& pass);
  std::string count_mask(Pass& pass);
  Amount row_element(const Node& n) const;
  // Read from a table in which it was repeated for rows that are walked as one.
  bool is_repeated(const Node& n) const {
    return shape_.columns > 0 && (n.lies == BesideRows::again || n.lies == BesideRows::by_row);
  }

  KernelText& k_ = state_.k;
  LoopPart& part_ = state_.part;
  LoopShape& shape_ = state_.shape;
  std::vector<LoopNode>& nodes_ = state_.nodes;
  Amount& vec_count_ = state_.vec_count;
  Amount& other_count_ = state_.other_count;
  RowWalk& walk_ = state_.walk;
  bool& is_ragged_ = state_.is_ragged;
  bool& has_vectors_ = state_.has_vectors;
  std::string& vec_ = state_.vec;
  std::string& row_ = state_.row;
};

}  // namespace tilewright::cpu
