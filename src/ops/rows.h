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
extern const ir::Op kCast, kStopGradient;
// arithmetic.cpp
extern const ir::Op kAdd, kSub, kMul, kDiv, kRem, kPow, kAtan2, kMinimum, kMaximum;
// elementary.cpp
extern const ir::Op kNeg, kAbs, kSign, kFloor, kCeil, kRound, kTrunc, kSqrt, kRsqrt, kReciprocal, kExp, kExp2,
    kExpm1, kLog, kLog2, kLog1p, kSin, kCos, kTan, kTanh, kErf, kSigmoid;
// logic.cpp
extern const ir::Op kEq, kNe, kLt, kLe, kGt, kGe, kIsnan, kIsinf, kIsfinite, kBitAnd, kBitOr, kBitXor,
    kBitNot, kShl, kShr, kWhere;
// view.cpp
extern const ir::Op kReshape, kTranspose, kExpand, kSlice, kPad, kConcat;
// reduction.cpp
extern const ir::Op kSum, kProd, kMax, kMin, kAny, kAll, kArgmax, kArgmin;
// scan.cpp
extern const ir::Op kCumsum, kCumprod, kCummax, kCummin;
// gather.cpp
extern const ir::Op kTake, kTakeAlong, kScatterAdd, kScatterAddAlong;
// matmul.cpp
extern const ir::Op kMatmul;

}  // namespace tilewright::ops
