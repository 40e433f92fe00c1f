// The op table.
#include "ops/ops.h"

#include "ops/rows.h"

#include <algorithm>

namespace tilewright::ops {

namespace {
constexpr const ir::Op* kTable[] = {
    &ir::input_op,
    // source.cpp
    &kConstant,
    &kIota,
    &kRandom,
    // cast.cpp
    &kCast,
    &kStopGradient,
    // arithmetic.cpp
    &kAdd,
    &kSub,
    &kMul,
    &kDiv,
    &kRem,
    &kPow,
    &kAtan2,
    &kMinimum,
    &kMaximum,
    // elementary.cpp
    &kNeg,
    &kAbs,
    &kSign,
    &kFloor,
    &kCeil,
    &kRound,
    &kTrunc,
    &kSqrt,
    &kRsqrt,
    &kReciprocal,
    &kExp,
    &kExp2,
    &kExpm1,
    &kLog,
    &kLog2,
    &kLog1p,
    &kSin,
    &kCos,
    &kTan,
    &kTanh,
    &kErf,
    &kSigmoid,
    // logic.cpp
    &kEq,
    &kNe,
    &kLt,
    &kLe,
    &kGt,
    &kGe,
    &kIsnan,
    &kIsinf,
    &kIsfinite,
    &kBitAnd,
    &kBitOr,
    &kBitXor,
    &kBitNot,
    &kShl,
    &kShr,
    &kWhere,
    // view.cpp
    &kReshape,
    &kTranspose,
    &kExpand,
    &kSlice,
    &kPad,
    &kConcat,
    // reduction.cpp
    &kSum,
    &kProd,
    &kMax,
    &kMin,
    &kAny,
    &kAll,
    &kArgmax,
    &kArgmin,
    &kCumsum,
    &kCumprod,
    &kCummax,
    &kCummin,
    // gather.cpp
    &kTake,
    &kTakeAlong,
    &kScatterAdd,
    &kScatterAddAlong,
    // matmul.cpp
    &kMatmul,
};
}  // namespace

std::span<const ir::Op* const> all_ops() { return kTable; }

const ir::Op* find_op(std::string_view name) {
  const auto found = std::find_if(std::begin(kTable), std::end(kTable),
                                  [name](const ir::Op* op) { return op->name == name; });
  return found == std::end(kTable) ? nullptr : *found;
}

}  // namespace tilewright::ops
