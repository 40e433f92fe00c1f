// Functions of tensors. Shapes broadcast by NumPy's rule and types promote by one table (docs/ops.md);
// literals take the tensor's type: an integer beyond what an integer tensor's type holds is an Error, for it
// would be another number there; a real literal beside integers gives f32, an integer beside bools that is
// neither 0 nor 1 gives an integer. Axes may be negative. A mistake throws Error naming the op, the types and
// the user's line.
#pragma once

#include <tilewright/tensor/indices.h>
#include <tilewright/tensor/tensor.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// A tensor or a literal, with the line it stands on.
struct Arg {
  Arg(Tensor t, const Location& l = Location::current()) : tensor(std::move(t)), is_tensor(true), where(l) {}
  template <std::floating_point T>
  Arg(T v, const Location& l = Location::current()) : real(static_cast<double>(v)), is_real(true), where(l) {}
  template <std::integral T>
  Arg(T v, const Location& l = Location::current())
      : real(static_cast<double>(v)), integer(static_cast<Index>(v)), where(l) {}
  Tensor tensor;
  double real = 0;
  Index integer = 0;
  bool is_tensor = false, is_real = false;
  Location where;
};

#define TW_HERE const Location& where = Location::current()

// --- pointwise
// Infinities, NaN, zeros and saturation: values as C99's annex F (IEEE 754) has them, gradients as PyTorch,
// but d abs and d elu of NaN are NaN, and d clamp of NaN is 1. So d sqrt(0) is inf, d abs(0) 0, ties of
// minimum and maximum share it, and gelu and silu of -inf are NaN (-inf · 0), of numbers far below 0 -0.
// Integers wrap around.
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);  // true division: integers give f32
Tensor operator%(const Arg& a, const Arg& b);  // C's: the sign of a
Tensor operator-(const Arg& a);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator&(const Arg& a, const Arg& b);
Tensor operator|(const Arg& a, const Arg& b);
Tensor operator^(const Arg& a, const Arg& b);
Tensor operator~(const Arg& a);
Tensor operator<<(const Arg& a, const Arg& b);
Tensor operator>>(const Arg& a, const Arg& b);
// logical_not, logical_and, logical_or: of any type, != 0 first. Unlike C++'s own, && and || always evaluate
// both sides.
Tensor operator!(const Arg& a);
Tensor operator&&(const Arg& a, const Arg& b);
Tensor operator||(const Arg& a, const Arg& b);

// a += b is a = a + b: the handle a gets the new value, with the shape and type of the sum; other handles of
// what it was keep that. No memory is written over (for that: into() and CompileOptions::donate).
Tensor& operator+=(Tensor& a, const Arg& b);
Tensor& operator-=(Tensor& a, const Arg& b);
Tensor& operator*=(Tensor& a, const Arg& b);
Tensor& operator/=(Tensor& a, const Arg& b);
Tensor& operator%=(Tensor& a, const Arg& b);
Tensor& operator&=(Tensor& a, const Arg& b);
Tensor& operator|=(Tensor& a, const Arg& b);
Tensor& operator^=(Tensor& a, const Arg& b);
Tensor& operator<<=(Tensor& a, const Arg& b);
Tensor& operator>>=(Tensor& a, const Arg& b);

// add, sub, minimum, eq, bit_and, pow and the rest of two: the list says which, and what they do with
// integers.
#define TW_FUNCTION(f, literals) Tensor f(const Arg& a, const Arg& b, TW_HERE);
#include <tilewright/ops/binary.def>
// a where the condition, a tensor of bools, is true; b elsewhere. The three broadcast; a and b promote.
Tensor where(const Tensor& condition, const Arg& a, const Arg& b, const Location& at = Location::current());
// min(max(x, low), high), as PyTorch: bounds that cross give high, a bound that is NaN gives NaN. Integers
// stay of their type where both bounds are whole numbers that it holds; otherwise they become f32: maximum
// and minimum bound them from one side.
Tensor clamp(const Tensor& x, double low, double high, TW_HERE);

// neg, abs, sqrt, exp, tanh, relu, elu and the rest of one number: the list says which.
#define TW_FUNCTION(f) Tensor f(const Tensor& x, TW_HERE);
#define TW_COMPOSITE_OF(f, parameter, usual, ...) \
  Tensor f(const Tensor& x, double parameter = usual, TW_HERE);
#include <tilewright/ops/unary.def>
Tensor gelu(const Tensor& x, TW_HERE);       // x Φ(x), by erf
Tensor gelu_tanh(const Tensor& x, TW_HERE);  // the tanh approximation
// The elements in another type, by the rules of convert() (base/dtype.h).
Tensor cast(const Tensor& x, DType dtype, TW_HERE);
// A tensor of x's shape and type, on its device.
Tensor zeros_like(const Tensor& x, TW_HERE);
Tensor full_like(const Tensor& x, double value, TW_HERE);

// --- views: index arithmetic, no copies inside a compiled function
Tensor reshape(const Tensor& x, const Shape& shape, TW_HERE);  // one extent may be -1
// Axis i of the result is axis perm[i] of x; `perm` names each axis once.
Tensor transpose(const Tensor& x, const std::vector<Index>& perm, TW_HERE);
// Axes a and b change places.
Tensor swap_axes(const Tensor& x, Index a, Index b, TW_HERE);
// x, repeated along axes of one element, and along new ones in front, until it has this shape.
Tensor broadcast_to(const Tensor& x, const Shape& shape, TW_HERE);
// A new axis of one element, at this place among the result's.
Tensor unsqueeze(const Tensor& x, Index axis, TW_HERE);
// Without that axis, which must have one element.
Tensor squeeze(const Tensor& x, Index axis, TW_HERE);
// Python's x[start:stop:step] along one axis.
Tensor slice(const Tensor& x, Index axis, const SliceRange& range, TW_HERE);
// The part at one position, without the axis; a negative one counts from the end.
Tensor select(const Tensor& x, Index axis, Index position, TW_HERE);
// `low` elements before and `high` behind, neither negative: `value`, whose fraction is cut where x holds
// integers.
Tensor pad(const Tensor& x, Index axis, Index low, Index high, double value = 0, TW_HERE);
// The parts one behind another along the axis: other extents are equal, types promote.
Tensor concat(const std::vector<Tensor>& parts, Index axis = 0, TW_HERE);
// Parts of one shape, along a new axis.
Tensor stack(const std::vector<Tensor>& parts, Index axis = 0, TW_HERE);
// Consecutive parts of these extents, which add up to that of the axis.
std::vector<Tensor> split(const Tensor& x, Index axis, const std::vector<Index>& extents, TW_HERE);
// Elements in the reverse order along these axes.
Tensor flip(const Tensor& x, const Axes& axes, TW_HERE);
// Axes first to last become one; of a scalar, one axis of one element.
Tensor flatten(const Tensor& x, Index first = 0, Index last = -1, TW_HERE);
Tensor moveaxis(const Tensor& x, Index from, Index to, TW_HERE);  // the others keep their order
// Moved by `shift` places along the axis; what leaves at one end comes in at the other.
Tensor roll(const Tensor& x, Index shift, Index axis, TW_HERE);
// Each element `count` times, behind one another along the axis.
Tensor repeat(const Tensor& x, Index count, Index axis, TW_HERE);
// All of x counts[i] times along axis i, NumPy's tile() (a name that the tile language has here): the last
// axes of x and the last counts meet, and what is missing of either counts 1. repmat(x, {2, 1}) of [3] is
// [2, 3]. Throws Error on a count below 0.
Tensor repmat(const Tensor& x, const std::vector<Index>& counts, TW_HERE);
// Coordinates of a grid: of vectors of n0, n1, … elements, each broadcast to [n0, n1, …] along its own axis
// (NumPy's indexing="ij"). Each keeps its type. Throws Error of what is no vector.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, TW_HERE);
// The matrices (.., rows, columns) of x with zeros above, or below, the given diagonal: 0 is the main one,
// positive ones are above it.
Tensor tril(const Tensor& x, Index diagonal = 0, TW_HERE);
Tensor triu(const Tensor& x, Index diagonal = 0, TW_HERE);

// 0, 1, … one for each element along x's axis: i64[extent], on x's device; x's elements are not looked at.
Tensor positions(const Tensor& x, Index axis, TW_HERE);

// --- reductions over `axes` (empty: all); Keep::yes leaves unit axes
// sum, mean, max and the rest that take nothing else: the list says which.
#define TW_REDUCTION(f) Tensor f(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no, TW_HERE);
#include <tilewright/tensor/reductions.def>
// The mean square of the distance from the mean, divided by count - ddof instead of count. Integers give f32.
Tensor var(const Tensor& x, const Axes& axes = {}, Index ddof = 0, Keep keep = Keep::no, TW_HERE);
// The position of the largest, or smallest, element along the axis, i64: the first of several.
Tensor argmax(const Tensor& x, Index axis, Keep keep = Keep::no, TW_HERE);
Tensor argmin(const Tensor& x, Index axis, Keep keep = Keep::no, TW_HERE);
// The sum, product, largest or smallest of the elements up to each, itself among them, along the axis:
// cumsum, cumprod, cummax, cummin; the list says which.
#define TW_SCAN(f) Tensor f(const Tensor& x, Index axis, TW_HERE);
#include <tilewright/tensor/scans.def>

// --- sorting along an axis: equal elements keep their order, and NaN counts as the largest: the last of
// ascending elements (as in NumPy), the first of descending ones (as in PyTorch). Any type; rows of up to
// 2^31 - 1 elements. Throws Error on an axis out of range.
Tensor sort(const Tensor& x, Index axis = -1, Order order = Order::ascending, TW_HERE);
// i64 positions: take_along(x, argsort(x, axis), axis) is sort(x, axis). They have no gradient.
Tensor argsort(const Tensor& x, Index axis = -1, Order order = Order::ascending, TW_HERE);
// The k largest elements, from the largest on, and their i64 positions. Throws Error where k is negative or
// more than the axis has.
std::pair<Tensor, Tensor> topk(const Tensor& x, Index k, Index axis = -1, TW_HERE);

// --- indexing: indices are in [0, extent); −1 does not count from the end. One out of range, and a label
// outside the classes of a loss, throws Error with the index, its place and the line where indices are
// checked (ContextOptions::check); elsewhere it reads zero and adds nothing. one_hot gives zeros for it by
// definition.
// x at these positions along the axis, whose place the index's axes take.
Tensor take(const Tensor& x, const Tensor& index, Index axis, TW_HERE);
// Element by element: index has x's shape but along the axis, and so has the result.
Tensor take_along(const Tensor& x, const Tensor& index, Index axis, TW_HERE);
// Zeros of this shape, with parts of the update added at these positions along the axis: take() the other
// way.
Tensor scatter_add(const Tensor& index, const Tensor& update, Index axis, const Shape& shape, TW_HERE);
// x with the block of the value's shape from `start` on replaced by the value, which is cast to x's type; and
// that block. `start` is one integer for each axis: a tensor [rank], or a list of integer scalars, of which
// tensors are read at each call: update_slice(cache, k, {0, 0, position, 0}). As JAX does, a start is brought
// to where the block lies inside; where indices are checked (a tensor [rank]: by ContextOptions::check = true
// alone) one that would have to be throws Error. Compiled, only the block is written where x is donated or
// written over (CompileOptions::donate, Compiled::into) and nothing reads the old x behind it; else x is
// copied around it. Throws Error where ranks differ, and where the block is larger than x.
struct Starts {
  Starts(Tensor one_for_each_axis) : whole(std::move(one_for_each_axis)) {}
  Starts(std::initializer_list<Arg> each) : parts(each) {}
  Starts(std::vector<Arg> each) : parts(std::move(each)) {}
  std::optional<Tensor> whole = {};
  std::vector<Arg> parts = {};
};
// x with the block from `start` on replaced by the value.
Tensor update_slice(const Tensor& x, const Tensor& value, const Starts& start, TW_HERE);
// The block of this shape from `start` on.
Tensor dynamic_slice(const Tensor& x, const Starts& start, const Shape& shape, TW_HERE);
// Rows of the table (V, D) by their numbers: index (..) gives (.., D).
Tensor embedding(const Tensor& table, const Tensor& index, TW_HERE);
// index (..) gives (.., classes): 1 at the index, 0 elsewhere.
Tensor one_hot(const Tensor& index, Index classes, DType dtype = DType::f32, TW_HERE);

// --- products, normalisation, losses
// What a product does not use, it does not multiply, not even by 0, and neither do its gradients: rows of no
// group, behind the last end or past a count, matrices of groups without rows, and keys that masks hide from
// every query (attention.h) may hold anything, infinities and NaN too. Their own gradients are 0.
Tensor matmul(const Tensor& a, const Tensor& b, TW_HERE);
// Sums of products over named axes, "bhqd,bhkd->bhqk": axes that the result lacks are summed away. "..."
// stands for the axes that have no letters, which broadcast. A product is of matmul's type for its operands,
// whatever is summed first: integers of 8 bits give i32, others their own type. Of more than two operands the
// pair whose product has the fewest elements is multiplied first, and what lies between is rounded to that
// type. Throws Error on a spec that is not "axes of a, axes of b, … -> axes of the result", on an axis that
// is named twice in one operand, and where sizes differ.
Tensor einsum(std::string_view spec, const std::vector<Tensor>& operands, TW_HERE);
Tensor einsum(std::string_view spec, const Tensor& a, const Tensor& b, TW_HERE);
// A product with one matrix of w (G, K, N) for each block of rows, as mixtures of experts need it: x (T, K)
// lies in blocks of T / B rows, and block b is multiplied by w[group_of_block[b]]; group_of_block (B) of
// integers. Gives (T, N) of matmul's type; a number outside [0, G) gives a block of zeros, which pads groups
// to whole blocks. No copy of w is gathered: the kernel reads each matrix where it lies. The gradient of a
// matrix is summed over its blocks in f32 and rounded once. Throws Error on other ranks, differing K, and T
// that is no multiple of B.
Tensor grouped_matmul(const Tensor& x, const Tensor& w, const Tensor& group_of_block, TW_HERE);
// The same of groups of any length one after another, as torch._grouped_mm takes them: rows ends[g - 1] up to
// ends[g] of x (T, K) are multiplied by w[g]; ends (G) of integers ascends from 0 to T at most, and a group
// may be empty. Gives (T, N) of matmul's type; rows behind the last end are zeros. What ends holds is read at
// each call, and looked at as indices are (ContextOptions::check). Throws Error on other ranks, differing K,
// another number of ends, and ends that descend.
Tensor ragged_matmul(const Tensor& x, const Tensor& w, const Tensor& ends, TW_HERE);
// The same where each group has room for M rows and uses the first counts[g]: x (G, M, K), w (G, K, N),
// counts (G) of integers give (G, M, N), zeros in the rows past the count whatever x holds there. Throws
// Error on other ranks, and where groups or K differ.
Tensor masked_matmul(const Tensor& x, const Tensor& w, const Tensor& counts, TW_HERE);
// Σ_k scale_a · a · scale_b · b of quantised operands a (.., M, K) and b (.., K, N), commonly 8-bit floats:
// f32
// (.., M, N), f64 where a scale is. A scale has its operand's rank and along each axis one value for all, or
// one for each block of 128: scale_a (M, K/128) and scale_b (K/128, N/128) are the recipe of 1×128 by
// 128×128. Along M and N one for each row or column is a third way. Blocks at an end may be shorter. Each
// block's product is summed in the result's type, multiplied by its scales, and added to the sum. Throws
// Error on other shapes.
Tensor scaled_matmul(const Tensor& a, const Tensor& scale_a, const Tensor& b, const Tensor& scale_b, TW_HERE);
// Weights of 4 bits: i8 values from -8 to 7 (.., N) as bytes (.., N/2), column c in the low half of a byte
// and column c + N/2 in the high half; and back. Throws Error on other types and an odd N.
Tensor pack_int4(const Tensor& values, TW_HERE);
Tensor unpack_int4(const Tensor& packed, TW_HERE);
// x (.., K) times i8 weights (K, N), of which each group of K/G rows has a scale for every column: scales (G,
// N).
// (.., N) in x's type, in which weights and x are multiplied (whole numbers of 8 bits are exact in bf16),
// each group summed in f32. Of unpack_int4(packed) in one compiled function the bytes are unpacked as they
// are multiplied. Throws Error on other shapes and types.
Tensor quantized_matmul(const Tensor& x, const Tensor& weights, const Tensor& scales, TW_HERE);
// exp(x) / Σ exp(x) along the axis, and its logarithm, without overflow.
Tensor softmax(const Tensor& x, Index axis = -1, TW_HERE);
Tensor log_softmax(const Tensor& x, Index axis = -1, TW_HERE);
// (x - mean) / √(var + epsilon) along the last axis, times gamma, plus beta, where they are given.
Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                  double epsilon = 1e-5, TW_HERE);
// x / √(mean of x² + epsilon) along the last axis, times gamma where it is given.
Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& gamma, double epsilon = 1e-5, TW_HERE);
// logits (.., C), integer labels (..): mean over the rows; f32, or f64 for f64 logits.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, TW_HERE);
// The same of the logits x (.., D) · wᵀ, w (classes, D). Compiled, these are in memory in pieces at most.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& labels, TW_HERE);
// Zeroes elements with probability p, in [0, 1), scales the rest by 1/(1-p); the same seed (i64[]) gives the
// same mask.
Tensor dropout(const Tensor& x, const Tensor& seed, double p, TW_HERE);
// Uniform numbers in [0, 1), multiples of 2⁻²⁴ in f32; the same seed (i64[]) gives the same on every device
// (Philox). Throws Error where the seed is another tensor.
Tensor uniform(const Tensor& seed, const Shape& shape, TW_HERE);

#undef TW_HERE

}  // namespace tilewright
#pragma GCC visibility pop
