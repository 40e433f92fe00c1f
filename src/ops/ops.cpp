// The op table.
#include "ops/ops.h"

#include "ops/checkpoint.h"
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
    &kWithGradientOf,
    // checkpoint.cpp
    &kCheckpoint,
// arithmetic.cpp
#define TW_ARITHMETIC(f, Row, type, literals) &k##Row,
#define TW_WRITTEN(f, Row, literals) &k##Row,
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
    // elementary.cpp
    &kNeg,
    &kAbs,
    &kSign,
#define TW_ROUNDING(f, Row) &k##Row,
#define TW_FLOAT(f, Row) &k##Row,
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>
// logic.cpp
#define TW_COMPARISON(f, Row, type, literals) &k##Row,
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
#define TW_TEST(f, Row, whole) &k##Row,
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>
#define TW_BITS(f, Row, type, literals) &k##Row,
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
#define TW_BIT(f, Row) &k##Row,
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>
#define TW_SHIFT(f, Row, type, literals) &k##Row,
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
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
    &kArgsort,
    &kCumsum,
    &kCumprod,
    &kCummax,
    &kCummin,
    // gather.cpp
    &kTake,
    &kTakeAlong,
    &kScatterAdd,
    &kScatterAddAlong,
    &kUpdateSlice,
    &kDynamicSlice,
    // matmul.cpp
    &kMatmul,
};
}  // namespace

std::span<const ir::Op* const> all_ops() { return kTable; }

}  // namespace tilewright::ops
