// LoopText: one part of an element loop as C++ text.
//
// An operation used once is written inside the expression that uses it, up to the size of a readable line; a
// product used once by an addition or subtraction becomes a multiply-add (one rounding instead of two, never
// less exact). What does not change along the vectors' axis is computed once per row as a scalar. Along that
// axis runs a main loop with several vectors in flight and no masks, then, where the count is not a whole
// number of those steps or a view ends inside, a second loop of single vectors under masks.
#pragma once

#include "backends/cpu/loops/loop_shape.h"
#include "backends/cpu/loops/row_walks.h"
#include "backends/cpu/text/prims.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::cpu {

class LoopText {
 public:
  explicit LoopText(KernelText& k, LoopPart part, RowWalk walk = {});
  void print();

 private:
  using Instr = printer::Instr;

  // Where an access has elements along the vectors' axis.
  struct Window {
    std::string begin, end;                   // texts; empty: the loop's own
    std::vector<std::string> row_conditions;  // that this row exists
    std::vector<std::string> all_rows;        // that every row does
    bool any() const { return !begin.empty() || !end.empty() || !row_conditions.empty(); }
  };
  struct Node {
    bool along_vec = false, along_other = false;  // what its value changes with
    std::string text;       // scalar: the expression or name; vector: the name, before the copy's number
    std::string total;      // of a sum in blocks: the f64 that these are added to
    int uses = 0;           // by instructions of this part
    int consumer = -1;      // the one instruction that uses it
    int operations = 1;     // in its expression, with what is written inside it
    bool in_place = false;  // written inside its consumer's expression instead of having a name
    bool in_mad = false;    // inside a multiply-add, whose product it is
    bool needed = false;    // someone reads its lanes, not only where they begin to count
    Access access;
    std::string base;     // pointer to the access' first element
    std::string pointer;  // to the row's first element
    Window window;
    std::string row_end;      // where `window` depends on the row: its end in this row
    bool streams = false;     // a store past the caches …
    std::string stream_test;  // variable that says whether the row is aligned; empty: it always is
  };
  // One pass over the body: how many vectors, whether lanes may be missing.
  struct Pass {
    int copies = 1;
    Index apart = 0;  // elements from one copy to the next; 0: a vector
    bool masked = false;
    std::string index;                         // of the first vector's first lane
    std::string steps;                         // the same, counted from where the walk begins
    std::map<std::string, std::string> masks;  // window → variable
    std::string words;                         // the last block of random words
  };

  // --- what depends on what (loop_text.cpp)
  void analyse();
  void analyse_access(int i);
  void choose_in_place();
  bool fits_in_place(int i) const;
  bool is_product_of_mad(int i) const;
  bool is_inner(int i) const { return node(i).along_other || is_writing(i); }
  void trim_axis(int axis, Amount* count);
  Window window_of(const Access& access);
  std::string limit_variable(const std::string& from, const std::string& to, Index most);

  // --- integers that count lanes (loop_lanes.cpp)
  bool is_uniform(const printer::Ref& ref) const;
  bool counts_lanes(const printer::Ref& ref) const;
  void add_first(const printer::Ref& ref, Sum& sum, Pass& pass);
  std::string first_text(const printer::Ref& ref, int copy, Pass& pass);
  bool first_is_multiple(const printer::Ref& ref, Index factor) const;
  int counting_side(int i) const;
  bool is_block_of_words(int i) const;
  void find_needed_lanes();
  std::string lane_mask_text(int i, int side, int copy, Pass& pass);
  std::string words_text(int i, int copy, Pass& pass);

  // --- the order of loops (loop_walk.cpp)
  void print_rows();
  void print_columns_outside();
  void print_along_vec(const std::function<void(Pass&)>& body);
  Index streams_apart(const Amount& whole) const;
  bool goes_backwards(const Amount& whole) const;
  bool is_in_blocks(int i) const;
  bool has_blocks() const;
  std::pair<std::string, std::string> open_blocks(const Amount& begin, const Amount& end, Index span,
                                                  bool backwards);

  // --- what stands before loops (loop_text.cpp)
  Amount whole_vectors();
  void declare_pointers();
  void declare_prefetches();
  void print_prefetches(const Pass& pass);
  void declare_row(int i, std::set<std::string>& declared);
  void print_uniform(bool along_other);
  void print_uniform_effects();

  // --- instructions (loop_body.cpp)
  enum class Which : unsigned char { all, not_along_other, along_other };
  bool is_of(int i, Which which) const {
    return which == Which::all || is_inner(i) == (which == Which::along_other);
  }
  void declare_rows(Which which);
  void print_body(Pass& pass, Which which);
  void print_vector(int i, Pass& pass);
  std::string compute_text(int i, int copy, Pass& pass);
  Term operation(int i, int copy, Pass& pass);
  std::optional<Term> one_plus_tanh(int i, int copy, Pass& pass);
  bool is_constant(const printer::Ref& ref, double value) const;
  Term multiply_add(int i, int side, int copy, Pass& pass);
  std::string load_text(int i, int copy, Pass& pass);
  std::string offsets_text(int i, std::size_t first, int copy, Pass& pass);
  std::string gather_text(int i, int copy, Pass& pass);
  void print_store(int i, Pass& pass);
  std::string store_text(const Node& n, const std::string& value, int copy, Pass& pass);
  void print_indexed_effect(int i, Pass& pass);
  std::string uniform_text(int i);
  void print_uniform_effect(int i);
  std::string row_element(const Node& n) const;

  // --- reductions and scans (loop_reduce.cpp)
  void declare_accumulators(const Pass& pass);
  void declare_totals(int i, const Pass& pass);
  void declare_block_sums(const Pass& pass);
  void close_blocks(const Pass& pass);
  void accumulate(int i, Pass& pass);
  void finish_reductions(Pass& pass);
  void finish_along_vec(int i, int copies);
  void print_scan(int i, Pass& pass);
  void print_kept_scalar(int i, const std::string& value);

  // --- small texts
  Node& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }
  const Node& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  const Instr& instr(int i) const { return part_.at(i); }
  DType dtype_of(const printer::Ref& ref) const;
  Term term(const printer::Ref& ref, int copy, Pass& pass);
  std::string at(const Pass& pass, int copy) const;
  std::string copy_name(const std::string& name, int copy, const Pass& pass) const;
  std::string mask(const Node& n, Pass& pass);
  std::string count_mask(Pass& pass);
  bool is_ragged() const { return is_ragged_; }
  bool is_writing(int i) const {
    return instr(i).kind != Instr::Kind::compute && instr(i).kind != Instr::Kind::reload;
  }
  static bool is_accumulating(const Instr& i);

  KernelText& k_;
  LoopPart part_;
  LoopShape shape_;
  std::vector<Node> nodes_;
  Amount vec_count_, other_count_;  // numbers, or variables where the loop is trimmed
  RowWalk walk_;
  std::vector<std::string>
      ahead_pointers_;        // of each of walk_.ahead: where its first quarter begins; empty: not fetched
  bool is_ragged_ = false;    // the count is not known to be a whole number of vectors
  bool has_vectors_ = false;  // something changes along the vectors' axis
  std::string vec_;           // the variables of the two axes
  std::string row_;
  std::map<std::string, std::string> limits_;    // "extent - start" → variable
  std::map<std::string, std::string> pointers_;  // expression → variable, also of rows
};

}  // namespace tilewright::cpu
