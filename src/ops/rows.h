// The op rows by name. Each is defined in its family's file; ops.cpp lists them all.
#pragma once

#include "ir/op.h"

namespace tilewright::ops {

// Gradient rule of ops that are constant almost everywhere (floor, comparisons, argmax, stop_gradient): the
// gradient is zero, which is not the same as having none (ir::no_gradient).
std::vector<std::optional<ir::Value>> zero_gradient(std::span<const ir::Value> operands,
                                                    const ir::Attrs& attrs, ir::Value result, ir::Value grad);

// The remaining columns that a row cannot do without; the functions are ir::Required.
consteval ir::Op checked(ir::Op op) {
  if (op.name.empty() || op.doc.empty()) throw "a row needs a name and a doc";
  return op;
}

// source.cpp
extern const ir::Op kConstant, kIota, kRandom;
// cast.cpp
extern const ir::Op kCast, kStopGradient, kWithGradientOf;
// arithmetic.cpp and logic.cpp
#define TW_ROW(f, Row, type, literals) extern const ir::Op k##Row;
#define TW_ARITHMETIC TW_ROW
#define TW_COMPARISON TW_ROW
#define TW_BITS TW_ROW
#define TW_SHIFT TW_ROW
#define TW_WRITTEN(f, Row, literals) extern const ir::Op k##Row;
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
#undef TW_ROW
// elementary.cpp, hyperbolic.cpp and logic.cpp
extern const ir::Op kNeg, kAbs, kSign;
#define TW_ROUNDING(f, Row) extern const ir::Op k##Row;
#define TW_FLOAT(f, Row) extern const ir::Op k##Row;
#define TW_TEST(f, Row, whole) extern const ir::Op k##Row;
#define TW_BIT(f, Row) extern const ir::Op k##Row;
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>
extern const ir::Op kWhere;
// view.cpp
extern const ir::Op kReshape, kTranspose, kExpand, kSlice, kPad, kConcat;
// reduction.cpp
extern const ir::Op kSum, kProd, kMax, kMin, kAny, kAll, kArgmax, kArgmin;
// scan.cpp
extern const ir::Op kCumsum, kCumprod, kCummax, kCummin;
// sort.cpp
extern const ir::Op kArgsort;
Order order_attr(const ir::Attrs& attrs);  // of attribute `order`; throws Error where it is neither
// gather.cpp
extern const ir::Op kTake, kTakeAlong, kScatterAdd, kScatterAddAlong;
extern const ir::Op kUpdateSlice, kDynamicSlice;
// matmul.cpp
extern const ir::Op kMatmul;
// An attribute of matmul: how many pairs of parts lie behind one another along its depth, where it is one of
// the products that an f32 product is written as (passes/graph/products_by_parts.h). That of one pair is
// summed as exactly as f32.
inline constexpr const char* kPartsAttr = "parts";

}  // namespace tilewright::ops
