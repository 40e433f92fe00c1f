// How each scalar primitive is written in CUDA C++: one row per primitive and accuracy.
#pragma once

#include "backends/printer/accuracy.h"

#include <tilewright/base/dtype.h>
#include <tilewright/tile/prim.h>

#include <string>
#include <vector>

namespace tilewright::cuda {

// Operators where C++ says the same, functions of the device headers otherwise.
struct PrimText {
  tile::Prim prim;
  const char* wide;     // floats, {0} {1} {2}
  const char* integer;  // integers and bool; null where not defined
  const char* fast;     // f32 whose value ends in narrow floats; null: as wide
  const char* coarse;   // f32 that reaches bf16 without a sum; null: as fast
};
const PrimText& prim_text(tile::Prim prim);

struct PrimUse {
  tile::Prim prim;
  DType dtype;  // of the operands (of the second one for select)
  printer::Accuracy accuracy = printer::Accuracy::exact;
  bool wraps = true;     // integer arithmetic may leave its type
  bool tests = false;    // bool operands are computed, not loaded
  bool rounded = false;  // a product, tile::Op::rounded
};
std::string prim_expression(const PrimUse& use, const std::vector<std::string>& operands);
// The device header that the expression needs: "arith", "math" or "math_fast"; "" for plain C++.
std::string prim_header(const PrimUse& use);

}  // namespace tilewright::cuda
