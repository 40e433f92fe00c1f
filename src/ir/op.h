// Op: one row that is the whole of a graph operation. The rows live in ops/<family>.cpp; everything else
// (parser, docs, parity, gradient and cost tests, lowering) is generated from them.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/builder.h>

#include <concepts>
#include <functional>
#include <span>
#include <string_view>

namespace tilewright::ir {

// What the passes need to know about an op's access pattern.
enum class OpClass : std::uint8_t {
  input,      // no operands
  constant,   // attr value; one number everywhere (type from attrs shape, dtype)
  iota,       // i64 coordinate along attr axis
  pointwise,  // operands and result share a shape; `lower` writes the tile expression
  cast,       // to attr dtype, rounding at once
  reshape,    // attr shape
  transpose,  // attr perm: result axis i is operand axis perm[i]
  expand,     // attr shape: unit axes stretch; ranks equal
  slice,      // attrs start, step (may be negative), shape: result[i] = operand[start + i * step]
  pad,        // attrs low, high (≥ 0), value
  concat,     // attr axis; any number of operands
  reduce,     // attrs axes (sorted), and the row's monoid; axes disappear
  scan,       // attr axis, the row's monoid; inclusive
  argsort,    // attrs axis, order (a name of base/order.h): i32 positions
  take,  // operands x, index (integer); attr axis: result = x.shape[:axis] + index.shape + x.shape[axis+1:]
  take_along,   // operands x, index of the same rank; attr axis: result[.., i, ..] = x[.., index[.., i, ..],
                // ..]
  scatter_add,  // operands index, update; attrs axis, shape: zeros of `shape`, update added at index along
                // axis (transpose of take)
  scatter_add_along,  // the transpose of take_along
  update_slice,       // operands x, value, start [rank]: x with the block from `start` on replaced
  dynamic_slice,      // operands x, start [rank]; attr shape: the block from `start` on
  random,  // operand seed (i64 scalar); attrs offset, shape: i64 word of Philox at counter offset + linear
           // index
  matmul,  // [.., M, K] × [.., K, N], equal batch axes
};

// float64 (floats) or int64 (integers, bool) values of a tensor: what the oracle computes with.
struct HostTensor {
  Type type;
  std::vector<double> f;        // when the dtype is a float
  std::vector<std::int64_t> i;  // otherwise
};

using EvalFn = HostTensor (*)(std::span<const HostTensor* const> operands, const Attrs& attrs,
                              const Type& type);
using InferFn = Type (*)(std::span<const Type> operands,
                         const Attrs& attrs);  // throws Error without location
// Gradients of the operands, in order; an empty optional where none flows.
using VjpFn = std::vector<std::optional<Value>> (*)(std::span<const Value> operands, const Attrs& attrs,
                                                    Value result, Value grad);
using LowerFn = tile::Value (*)(tile::Builder& builder, std::span<const tile::Value> operands,
                                const Attrs& attrs);

// Where an op is defined, for generated tests: inputs are drawn from [low, high], and gradients checked
// there.
struct Domain {
  double low = -4;
  double high = 4;
  bool smooth = true;  // finite differences hold everywhere inside
};

// A column that must be written: leaving it out does not compile.
template <class Fn>
struct Required {
  template <std::convertible_to<Fn> F>
  constexpr Required(F f) : fn(f) {}
  constexpr operator Fn() const { return fn; }
  Fn fn;
};

struct Op {
  std::string_view name;
  int arity;  // -1: any number
  OpClass kind;
  std::string_view doc;
  Required<InferFn> infer;
  Required<EvalFn> eval;    // the oracle: float64, independent of `lower`
  Required<VjpFn> vjp;      // `no_gradient` when not differentiable
  Required<LowerFn> lower;  // pointwise only; `structural` for classes the passes lower themselves
  double flops =
      0;  // per result element (reduce, scan: per operand element; matmul: 2K by the cost function)
  std::optional<tile::Monoid> monoid = {};  // reduce and scan
  Domain domain = {};
};

// The row of graph inputs, which Graph::add_input needs; all other rows are in ops/.
extern const Op input_op;

// The column entries that say "none": an op whose result has no gradient (differentiate reports the path),
// and an op that the passes lower by its class.
std::vector<std::optional<Value>> no_gradient(std::span<const Value> operands, const Attrs& attrs,
                                              Value result, Value grad);
tile::Value structural(tile::Builder& builder, std::span<const tile::Value> operands, const Attrs& attrs);

}  // namespace tilewright::ir
