// Ops that are compositions of others: plain functions, so gradients and every backend come for free. They
// are written so that what they and their gradients read is read once: reductions over one axis, the rest
// pointwise.
#pragma once

#include "ops/functions.h"

namespace tilewright::ops {

// --- views (view_composites.cpp)
Value flatten(Value x, Index first = 0, Index last = -1);  // axes first to last become one
Value moveaxis(Value x, Index from, Index to);
Value roll(Value x, Index shift, Index axis);    // what leaves at one end comes in at the other
Value repeat(Value x, Index count, Index axis);  // each element `count` times, behind one another
// All of x `counts[i]` times along axis i; the last axes of both meet, what is missing counts 1.
Value repmat(Value x, const std::vector<Index>& counts);
// Vectors of extents n0, n1, …, each broadcast to [n0, n1, …] along its own axis.
std::vector<Value> meshgrid(const std::vector<Value>& vectors);
// Zeros above, or below, a diagonal of the last two axes; 0 is the main one, positive ones are above it.
Value tril(Value x, Index diagonal = 0);
Value triu(Value x, Index diagonal = 0);

// --- statistics over `axes` (empty: all); integers give f32
Value mean(Value x, const Axes& axes = {}, Keep keep = Keep::no);
// Divides by count - ddof.
struct VarOptions {
  Index ddof = 0;
  Keep keep = Keep::no;
};
Value var(Value x, const Axes& axes = {}, const VarOptions& options = {});
Value logsumexp(Value x, const Axes& axes = {}, Keep keep = Keep::no);  // -inf of nothing but -inf

// --- activations; more in unary.def
Value clamp(Value x, const Operand& low, const Operand& high);
enum class Gelu { erf, tanh };
Value gelu(Value x, Gelu kind = Gelu::erf);

// --- normalization along the last axis, or `axis`; the result has x's type
Value softmax(Value x, Index axis = -1);
Value log_softmax(Value x, Index axis = -1);
// gamma, beta: the last axis, or absent.
Value layer_norm(Value x, std::optional<Value> gamma, std::optional<Value> beta, double epsilon = 1e-5);
Value rms_norm(Value x, std::optional<Value> gamma, double epsilon = 1e-5);

// --- products with a matrix of w (G, K, N) for each group of rows
// x (T, K) in as many blocks of equal height as group_of_block (blocks) has numbers: (T, N). A number outside
// [0, G) gives zeros.
Value grouped_matmul(Value x, Value w, Value group_of_block);
// x (T, K): (T, N), group g being the rows from ends[g - 1] up to ends[g]; behind the last end are zeros.
Value ragged_matmul(Value x, Value w, Value ends);
// x (G, M, K): (G, M, N), of each group the first counts[g] rows; the others are zeros.
Value masked_matmul(Value x, Value w, Value counts);

// --- products of quantised operands
// Σ_k scale_a · a[.., m, k] · scale_b · b[.., k, n] in f32 (in f64 if a scale is). Scales have the operand's
// rank; along each axis they are one for all or one for each kScaleBlock elements, along the rows of a and
// the columns of b perhaps one for each.
inline constexpr Index kScaleBlock = 128;
Value scaled_matmul(Value a, Value scale_a, Value b, Value scale_b);
// Numbers of 4 bits, -8 to 7, in i8: column c and column c + N / 2 of (.., N) in one byte, the first below.
Value pack_int4(Value values);
Value unpack_int4(Value packed);
// x (.., K) · the i8 weights (K, N) times a scale for each of K / groups of their rows: scales (groups, N).
// Multiplied in x's type, summed in f32, given in x's type.
Value quantized_matmul(Value x, Value weights, Value scales);

// --- losses and embeddings
enum class Reduction { mean, sum, none };
struct CrossEntropyOptions {
  std::optional<Index> ignore_index = {};  // rows with this label count nothing
  Reduction reduction = Reduction::mean;   // over the rows that count
};
// logits (.., C), labels (..) of integers; f32, or f64 for f64 logits. A label outside [0, C) picks nothing.
Value cross_entropy(Value logits, Value labels, const CrossEntropyOptions& options = {});
// cross_entropy of x (.., D) times w (classes, D) transposed: the logits, summed in f32 and never rounded,
// are many times larger than x and w, and compiled they are in no memory as a whole.
Value linear_cross_entropy(Value x, Value w, Value labels, const CrossEntropyOptions& options = {});
Value one_hot(Value index, Index classes, DType dtype = DType::f32);  // a last axis of `classes`
Value embedding(Value table, Value index);                            // table (V, D): rows by index

// --- random numbers: pure functions of the seed (i64[]) and the counters from `offset` on
Value rand(Value seed, const Shape& shape, Index offset = 0, DType dtype = DType::f32);  // [0, 1), 24 bits
// Box-Muller; takes two counters per element.
Value randn(Value seed, const Shape& shape, Index offset = 0, DType dtype = DType::f32);
// Zeroes each element with probability p and scales the others by 1 / (1 - p); one counter per element.
struct DropoutOptions {
  double p = 0.5;  // in [0, 1)
  Index offset = 0;
};
Value dropout(Value x, Value seed, const DropoutOptions& options);

}  // namespace tilewright::ops
