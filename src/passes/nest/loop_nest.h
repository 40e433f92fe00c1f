// LoopNest: what a fusion group computes for one point of its iteration space, with every view turned
// into index arithmetic. Fusion asks whether it exists; lowering turns it into a tile kernel.
#pragma once

#include "ir/op.h"
#include "passes/nest/index_expr.h"
#include "passes/nest/refusal.h"

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace tilewright::passes {

struct Expr {
  enum class Kind : std::uint8_t {
    load,      // element `offset` (+ dynamic) of the buffer of `node`
    index,     // the i64 value of `offset`
    constant,  // `number` in `dtype`
    op,        // a pointwise row on operands
    cast,      // explicit: rounds to `dtype`
    reduce,    // `monoid` over the reduced variables
    scan,      // `monoid` along the reduced variable, inclusive
    argsort,   // positions along the reduced variable, in the order that the row of `node` says
    in_range,  // bool: low <= offset + operand < high
    where,     // operands: condition, a, b
    random,    // operands: seed; counter `offset`
    dot,       // Σ over the reduced variables (inner: over one inner variable) of a · b, each in its type of
               // `operand_dtypes`
    product,   // of two operands, in `dtype` (dot_as_sums.h)
    clamp,     // i64: operand, brought into [low, high]
    epilogue_reduction,  // `monoid` over parallel variables, of what a dot gives (epilogue_reductions.h)
  };
  Kind kind = Kind::constant;
  ir::NodeId node = -1;
  std::vector<int> operands;
  IndexExpr offset;  // of an inner dot: its depth variable; of an epilogue reduction: the place among what it
                     // reduces
  std::vector<std::pair<int, Index>> dynamic;  // load: adds value of expr × stride
  int mask = -1;                               // load: bool expr; reads 0 where false
  DType dtype = DType::f32;                    // as stored (load), rounded (cast) or computed
  tile::Number number;
  tile::Monoid monoid = tile::Monoid::sum;
  std::array<DType, 2> operand_dtypes = {DType::f32, DType::f32};
  bool inner = false;
  bool two_level = false;  // dot: the sum is as exact as one in f32 (tile::DotPrecision)
  bool scaled_accumulation =
      false;  // inner: rows and columns are both parallel, the loop adds up products of blocks
  Index low = 0, high = 0;
  bool reduced = false;  // its value changes with a reduced variable
  int level = 0;         // reductions, scans and sorts it waits for, one after another
};

// Takes a whole row and gives one: the reduced variable is in one tile, and walked in no other way.
inline bool takes_whole_row(const Expr& e) {
  return e.kind == Expr::Kind::scan || e.kind == Expr::Kind::argsort;
}

// Accumulator type of products whose operands are of type `dtype`.
inline DType accumulator(DType operand_dtype) {
  if (is_float(operand_dtype)) return compute_dtype(operand_dtype);
  return operand_dtype == DType::i64 ? DType::i64 : DType::i32;
}
// The same of a dot, whose result may be narrower.
inline DType accumulator(const Expr& dot) { return accumulator(dot.operand_dtypes[0]); }

// The value that changes nothing, and that an empty reduction has.
tile::Number identity(tile::Monoid monoid, DType dtype);

using tile::extreme_of;
using tile::finds_place;

struct ProgramOutput {
  ir::NodeId node = -1;
  int expr = -1;
  IndexExpr offset;
  // scatter_add, update_slice: element offset + Σ value × stride
  std::vector<std::pair<int, Index>> dynamic;
  int mask = -1;            // bool expr: writes where true
  bool accumulate = false;  // atomic_add onto zeros
  ir::NodeId keeps = -1;    // update_slice: what its buffer holds elsewhere
};

// What an expr or an output is made of, by the names of these exprs in another nest.
void rename(Expr& expr, const std::function<int(int)>& name);
void rename(ProgramOutput& output, const std::function<int(int)>& name);

// The depth of an inner dot is in a tile as a whole up to this length. A longer one is walked in blocks; only
// loops that reduce what the dot gives to epilogue reductions of its rows have one.
inline constexpr Index kMostInnerDepth = 256;

// A kernel's views: its parameters stay well under 4 KB, the most that some devices take.
inline constexpr std::size_t kMaxViews = 48;

// Operations of a group of several nodes, divisions in offsets counted with them: every trial of fusion
// walks a program, and a compiler's time for straight-line code grows faster than the code does. A value that
// is read in several places is computed in each, so that a chain of concats or shifted sums grows as a power
// of its length. docs/notes/2026-11-22-compile-time.md has the measurement.
inline constexpr std::size_t kMostExprs = 512;

struct LoopNest {
  Extents extents;            // of the loop variables
  std::vector<bool> reduced;  // which of them are reduced away
  std::vector<bool> inner;    // which are the depth of a dot inside the loop, held whole
  std::vector<Expr> exprs;    // operands before users
  std::vector<ProgramOutput> outputs;
  bool transposed = false;  // rows and columns of what is added up have changed places, for a matrix unit
  // Reductions over two variables depend on each other: no loop can carry them, so that a tile must hold both
  // variables as a whole.
  bool held = false;

  int levels() const;  // longest chain of dependent reductions
  // The exprs that these are made of, themselves among them.
  std::vector<bool> made_of(const std::vector<int>& of) const;
  // The dots over the reduced variables: several share the rows and columns of their results, and blocks of
  // what the loop walks.
  std::vector<int> outer_dots() const;
  int dot() const;  // the first of them, or -1
  bool is_outer_dot(int expr) const;
  // More than one dot over blocks of memory: what is streamed stays on chip with what is carried.
  bool is_b2b() const;
  bool has_inner_dots() const;
  bool has_dots() const;            // of either kind
  bool accumulates_scaled() const;  // see Expr::scaled_accumulation
  bool is_empty() const;            // some axis has no elements: no kernel runs
  std::vector<int> reduced_variables() const;
  bool stores_reduced_values() const;  // an output's value changes with a reduced variable
  // Whether the reduced variables are walked once more to store an output: its value changes with one of
  // them, or its place does, as of a sum that is broadcast back over what was summed.
  bool is_stored_along_reduced(const ProgramOutput& output) const;
  bool stores_along_reduced() const;  // of any output
  // Whether it scans, and what its scans need of the row's blocks before is one value each: nothing sorts,
  // and no reduction waits for a scan.
  bool carries_scans() const;
  std::vector<int> parallel_variables() const;
};

// Elements that an access at this offset reaches: the points of the variables that it follows.
double touched(const IndexExpr& offset, const LoopNest& nest);

struct Group {
  std::vector<ir::NodeId> nodes;     // sorted; only nodes that compute (views, constants, iotas are inlined)
  std::vector<ir::NodeId> outputs;   // nodes whose values must reach memory
  bool epilogue_reductions = false;  // reductions of what its last matmul gives may be left by its tiles
};

// The node in whose memory a node's elements lie: the one behind all reshapes.
ir::NodeId storage_node(const ir::Graph& graph, ir::NodeId id);

// Views, constants and iotas never need a kernel of their own inside a group.
bool is_inlined(const ir::Node& node);

std::variant<LoopNest, Refusal> build_loop_nest(const ir::Graph& graph, const Group& group);

// A text for goldens and debugging.
std::string to_string(const ir::Graph& graph, const LoopNest& nest);

}  // namespace tilewright::passes
