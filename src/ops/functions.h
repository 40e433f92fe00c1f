// The functions that build graphs: one per op row, with NumPy broadcasting and the promotion of
// ops/promote.h. Composites, gradient rules and the user's API are written with them. Nodes take the graph's
// current location (ir::LocationScope); a mistake throws Error naming the op and the types. Axes may be
// negative.
#pragma once

#include "ir/graph.h"

#include <tilewright/base/order.h>

#include <concepts>
#include <span>
#include <utility>

namespace tilewright::ops {

using ir::Value;

// An operand as one writes it: a value, or a literal that takes the other operand's type.
struct Operand {
  Operand(Value v) : value(v) {}
  template <std::floating_point T>
  Operand(T literal) : real(static_cast<double>(literal)), is_real(true) {}
  template <std::integral T>
  Operand(T literal) : real(static_cast<double>(literal)), integer(static_cast<Index>(literal)) {}
  bool is_literal() const { return value.graph == nullptr; }
  Value value;
  double real = 0;
  Index integer = 0;
  bool is_real = false;
};

// --- from nothing
// A constant of a narrow float type keeps f32 precision, as every value does between a load and a store.
Value constant(ir::Graph& graph, DType dtype, const Shape& shape, double value);
Value constant_int(ir::Graph& graph, DType dtype, const Shape& shape, Index value);
Value full_like(Value x, double value);
Value iota(ir::Graph& graph, const Shape& shape, Index axis);  // i64 coordinates
// Words 0 … 2^32-1 of Philox as i64: counters offset, offset + 1, …; seed is i64[].
Value random_bits(Value seed, const Shape& shape, Index offset);

// --- pointwise
#define TW_FUNCTION(f, literals) Value f(const Operand& a, const Operand& b);
#include <tilewright/ops/binary.def>
#define TW_FUNCTION(f) Value f(Value x);
#define TW_COMPOSITE_OF(f, parameter, usual, ...) Value f(Value x, double parameter = usual);
#include <tilewright/ops/unary.def>

Value where(Value condition, const Operand& a, const Operand& b);

Value cast(Value x, DType dtype);
Value with_gradient_of(Value x, Value gradient);  // x, of the same type

// --- views
Value reshape(Value x, const Shape& shape);  // one extent may be -1
Value transpose(Value x, const std::vector<Index>& perm);
Value swap_axes(Value x, Index a, Index b);
Value broadcast_to(Value x, const Shape& shape);
Value unsqueeze(Value x, Index axis);  // a unit axis before `axis` of the result
Value squeeze(Value x, Index axis);
Value slice(Value x, const std::vector<Index>& start, const std::vector<Index>& step, const Shape& shape);
// Python's x[start:stop:step]: negative positions count from the end, both are clamped.
struct Range {
  std::optional<Index> start = {};
  std::optional<Index> stop = {};
  Index step = 1;
};
Value slice_axis(Value x, Index axis, const Range& range);
Value select(Value x, Index axis, Index position);  // one position; the axis disappears
Value pad(Value x, const std::vector<Index>& low, const std::vector<Index>& high, double value = 0);
Value pad_axis(Value x, Index axis, Index low, Index high, double value = 0);
Value concat(const std::vector<Value>& parts, Index axis);
Value stack(const std::vector<Value>& parts, Index axis);  // along a new axis
std::vector<Value> split(Value x, Index axis, const std::vector<Index>& extents);
Value flip(Value x, const std::vector<Index>& axes);

// --- reductions over `axes` (empty: all); integers and bools are summed in i64
enum class Keep { no, yes };  // yes: reduced axes stay as unit axes
using Axes = std::vector<Index>;
Value sum(Value x, const Axes& axes = {}, Keep keep = Keep::no);
Value prod(Value x, const Axes& axes = {}, Keep keep = Keep::no);
Value max(Value x, const Axes& axes = {}, Keep keep = Keep::no);
Value min(Value x, const Axes& axes = {}, Keep keep = Keep::no);
Value any(Value x, const Axes& axes = {}, Keep keep = Keep::no);  // != 0 first
Value all(Value x, const Axes& axes = {}, Keep keep = Keep::no);
Value argmax(Value x, Index axis, Keep keep = Keep::no);  // i64
Value argmin(Value x, Index axis, Keep keep = Keep::no);
Value cumsum(Value x, Index axis);
Value cumprod(Value x, Index axis);
Value cummax(Value x, Index axis);  // of x's type
Value cummin(Value x, Index axis);

// --- sorting along an axis: equal elements keep their order, NaN counts as the largest
Value sorting_positions(Value x, Index axis, Order order = Order::ascending);  // i32
Value argsort(Value x, Index axis = -1, Order order = Order::ascending);       // i64
Value sort(Value x, Index axis = -1, Order order = Order::ascending);
// The k largest, from the largest on, and their places (i64).
std::pair<Value, Value> topk(Value x, Index k, Index axis = -1);

// --- indexing: an index outside [0, extent) reads zero and adds nothing
Value take(Value x, Value index, Index axis);
Value take_along(Value x, Value index, Index axis);
Value scatter_add(Value index, Value update, Index axis, const Shape& shape);
// `start` has one number for each axis; a block as large as x begins at 0.
Value update_slice(Value x, Value value, Value start);
Value dynamic_slice(Value x, Value start, const Shape& shape);
Value scatter_add_along(Value index, Value update, Index axis, const Shape& shape);

// NumPy's matmul: vectors get a unit axis that disappears again, batch axes broadcast, types promote. `dtype`
// is the result's type: f32 for 8-bit floats and i32 for 8-bit integers unless given.
Value matmul(Value a, Value b, std::optional<DType> dtype = {});
// Sums of products over named axes, "bhqd,bhkd->bhqk": axes that the result lacks are summed. Two operands,
// letters, no axis twice in one operand. One matmul of views of the operands; its result's type.
Value einsum(std::string_view spec, const std::vector<Value>& operands);

}  // namespace tilewright::ops

// Operators, in Value's namespace so that argument-dependent lookup finds them.
namespace tilewright::ir {
Value operator+(const ops::Operand& a, const ops::Operand& b);
Value operator-(const ops::Operand& a, const ops::Operand& b);
Value operator*(const ops::Operand& a, const ops::Operand& b);
Value operator/(const ops::Operand& a, const ops::Operand& b);
Value operator-(Value a);
}  // namespace tilewright::ir
