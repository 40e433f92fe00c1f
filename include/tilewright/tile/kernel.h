// Tile IR: a kernel is parameters (views, scalars), a grid, and an SSA body over scalars and tiles of static
// shape. Everything above writes it (the compiler, users through tile/builder.h); every backend runs it.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/list.h>
#include <tilewright/base/order.h>
#include <tilewright/base/shape.h>
#include <tilewright/tile/prim.h>

#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// Tiles are at most this deep: enough for dot, and every backend maps two axes onto its machine.
inline constexpr int kMaxTileRank = 2;
inline constexpr Index kMaxTileElements = 1 << 22;  // more is a loop: no backend holds it on chip
inline constexpr int kMaxViewRank = 32;
inline constexpr Index kMaxViewSpan = Index{1} << 48;  // elements a view of constant sizes reaches over
inline constexpr int kMaxNesting = 16;                 // loops and branches inside one another

// The type of a value: rank 0 is a scalar.
struct TileType {
  DType dtype = DType::f32;
  std::vector<Index> shape;
  int rank() const { return static_cast<int>(shape.size()); }  // 0: a scalar
  // Elements; 1 of a scalar.
  Index size() const {
    Index n = 1;
    for (Index e : shape) n *= e;
    return n;
  }
  friend bool operator==(const TileType&, const TileType&) = default;
};
std::string to_string(const TileType& type);  // "f32" or "tile<f32,[64,128]>"

// A size known when the kernel is built, or an i64 scalar parameter.
struct Dim {
  Index value = 0;
  int scalar = -1;                                 // index into Kernel::scalars, or -1
  bool is_constant() const { return scalar < 0; }  // known when the kernel is built
  // What it is in a launch with the kernel's scalars.
  Index in(const std::int64_t* scalars) const { return is_constant() ? value : scalars[scalar]; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

// A strided window onto a buffer, in elements of `dtype`. Strides may be 0 (broadcast) or negative (flip).
// A launch binds the address of coordinate (0, …, 0).
struct ViewParam {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Dim> extents;
  std::vector<Dim> strides;
  Index align_bytes = 1;  // promised alignment of the bound address; a power of two
  int rank() const { return static_cast<int>(extents.size()); }  // the number of axes
  friend bool operator==(const ViewParam&, const ViewParam&) = default;
};

struct ScalarParam {
  std::string name;
  DType dtype = DType::i64;  // i64, f32 or f64
  friend bool operator==(const ScalarParam&, const ScalarParam&) = default;
};

// A tunable of the kernel's generator, bound when the kernel was built; kept so that reports can name it.
struct ConstParam {
  std::string name;
  Index value = 0;
  friend bool operator==(const ConstParam&, const ConstParam&) = default;
};

// One grid axis: the product of ceil_div(extent, block) over its factors.
struct GridFactor {
  Dim extent;
  Index block = 1;
  friend bool operator==(const GridFactor&, const GridFactor&) = default;
};
using GridAxis = std::vector<GridFactor>;
// Blocks that cover `extent`; none for an empty one.
constexpr Index block_count(Index extent, Index block) { return extent <= 0 ? 0 : (extent - 1) / block + 1; }
inline constexpr int kMaxGridAxes = 3;
inline constexpr int kMostTogether = 512;  // launches of a kernel that run as one

enum class OpKind {
  constant,      // `number`; a scalar or a tile of one value
  scalar_param,  // scalars[param]
  program_id,    // i64 coordinate along grid axis `param`
  arange,        // 0, 1, … n-1 : tile<i64,[n]>
  broadcast,     // scalar → any shape; unit axes stretch; ranks equal otherwise
  reshape,       // same elements in row-major order
  transpose,     // rank 2: axes swapped
  cast,          // to the result's dtype, rounding as base/dtype.h says
  apply,         // `prim` per element; operand shapes equal
  load,          // a block of views[param]; operands: one i64 scalar start per view dim
  store,         // operands: value, then the starts
  gather,        // views[param] at index tiles; operands: one i64 index per view dim [, mask]
  scatter,       // operands: value, indices [, mask]; no two elements of a launch may meet
  atomic_add,    // as scatter, adds instead; elements may meet, in any order
  reduce,        // `monoid` along `axis`, which disappears
  scan,          // inclusive `monoid` along `axis`
  argsort,       // i32 positions along `axis`, in the `order` of their elements (base/order.h)
  dot,           // a [M,K], b [K,N], acc [M,N]: acc + a·b, accumulated in acc's dtype
  random,        // operands: seed, counter (i64, taken as unsigned): word (counter & 3) of
                 // Philox4x32-10(seed, counter >> 2), as i64
  loop,    // operands: lower, upper, step, initial…; block args: induction, carried…; results: final carried
  branch,  // operand: bool scalar; blocks: then, else; both yield the results
  yield,   // ends a block
};
std::string_view name(OpKind kind);  // as the text form says: "load"

// What a dot keeps of its operands.
enum class DotPrecision {
  exact,  // all of them
  tf32,   // of f32 at least 10 bits of mantissa, rounded or cut off: tensor cores may multiply them
  // All of them, of narrow floats, and the sum is as exact as one in f32: units that cut sums off instead of
  // rounding them add each block's products by themselves.
  two_level,
};
std::string_view name(DotPrecision precision);  // "exact", "tf32", "two_level"

using ValueId = int;

// Declared here so that libtilewright.so shows them: friends alone would be hidden.
struct Number;
struct Op;
bool operator==(const Number& a, const Number& b);  // NaN equals NaN, -0 differs from +0
bool operator==(const Op& a, const Op& b);

// A literal: floats use f, integers and bool use i.
struct Number {
  double f = 0;
  std::int64_t i = 0;
};

struct Block;

struct Op {
  OpKind kind = OpKind::constant;
  Prim prim = Prim::add;
  Monoid monoid = Monoid::sum;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  int param = -1;                                // view, scalar or grid axis, by kind
  int axis = -1;                                 // reduce, scan, argsort
  Order order = Order::ascending;                // argsort
  DotPrecision precision = DotPrecision::exact;  // dot
  std::vector<int> tile_dims;                    // load, store: tile axis i walks view dim tile_dims[i]
  bool bounded = false;  // load: elements outside the view read as `number`; store: they are dropped.
                         // Otherwise the kernel promises to stay inside.
  bool masked =
      false;  // gather, scatter, atomic_add: last operand is a bool mask; gather reads `number` where false
  // A mul of floats: its product is rounded by itself, never contracted with what is added to it, because
  // more is made of it: copies of a sum of the product must be equal wherever they are computed.
  bool rounded = false;
  Number number;  // constant's value; load's and gather's fill
  std::vector<Block> blocks;
  std::string location;  // "file.cpp:41" of the user's call; not compared
};

struct Block {
  std::vector<ValueId> args;
  std::vector<Op> ops;
  friend bool operator==(const Block&, const Block&) = default;
};

struct ValueInfo {
  TileType type;
  std::string name;  // empty: printed as its id
  friend bool operator==(const ValueInfo&, const ValueInfo&) = default;
};

struct Kernel {
  std::string name;
  std::vector<ViewParam> views;
  std::vector<ScalarParam> scalars;
  std::vector<ConstParam> constants;
  std::vector<GridAxis> grid;  // 1 to kMaxGridAxes
  std::vector<ValueInfo> values;
  Block body;  // no args; no yield
  // The most launches of it that may run as one, each with views and scalars of its own, where a backend can:
  // launches that are too short to fill a machine. No part of what it computes.
  int together = 1;

  // The type of a value, 0 to values.size() - 1, which is not checked.
  const TileType& type(ValueId id) const& { return values[static_cast<std::size_t>(id)].type; }
  TileType type(ValueId id) && { return std::move(values[static_cast<std::size_t>(id)].type); }
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// A scalar argument as launches pass it: integers as they are, f64 as its bits, f32 as its bits
// zero-extended.
std::int64_t scalar_bits(DType dtype, double value);
double scalar_value(DType dtype, std::int64_t bits);

// Program count along each grid axis for these scalar arguments (as scalar_bits gives them).
std::vector<Index> grid_extents(const Kernel& kernel, const std::vector<std::int64_t>& scalars);

// Views the body reads (load, gather) and writes (store, scatter, atomic_add).
struct ViewUse {
  bool read = false;
  bool written = false;
  bool accumulated = false;  // by atomic_add
};
// One for each view of the kernel, in their order.
List<ViewUse> view_uses(const Kernel& kernel);

// Calls fn on every op, outer before inner, in program order.
template <class Fn>
void for_each_op(const Block& block, Fn&& fn) {
  for (const Op& op : block.ops) {
    fn(op);
    for (const Block& inner : op.blocks) for_each_op(inner, fn);
  }
}

}  // namespace tilewright::tile
#pragma GCC visibility pop
