// How each scalar primitive is written in CUDA C++: one row per primitive and accuracy.
#pragma once

#include "backends/cuda/print/text.h"
#include "backends/printer/accuracy.h"

#include <tilewright/base/dtype.h>
#include <tilewright/tile/prim.h>

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cuda {

struct PrimUse {
  tile::Prim prim;
  DType dtype;  // of the operands (of the second one for select)
  printer::Accuracy accuracy = printer::Accuracy::exact;
  bool wraps = true;     // integer arithmetic may leave its type
  bool tests = false;    // bool operands are computed, not loaded
  bool rounded = false;  // a product, tile::Op::rounded
};
// The primitive of these operands, as an expression of `type`. Its operations are not counted.
TypedText prim_expression(const PrimUse& use, const std::vector<TypedText>& operands, DType type);
// The device header that the expression needs: "arith", "math" or "math_fast"; "" for plain C++.
std::string_view prim_header(const PrimUse& use);

}  // namespace tilewright::cuda
