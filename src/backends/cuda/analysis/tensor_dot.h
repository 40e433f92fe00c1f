// TensorDot: a kernel's loop of one dot as a pipeline that tensor cores (or the ordinary units) multiply
// from: where the operands' blocks lie in memory and which of their axes is contiguous.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"
#include "backends/printer/loop_plan.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

#include <vector>

namespace tilewright::cuda {

struct TensorDot {
  const tile::Op* loop = nullptr;
  const tile::Op* dot = nullptr;
  TensorOperand a, b;
  DType dtype = DType::bf16;
  Index trips = 0;         // of the loop; 0 when arguments decide
  bool two_level = false;  // each block's product is added to the accumulator by itself (8-bit floats,
                           // DotPrecision::two_level)
  bool from_zero = false;  // the accumulator starts as zeros, and the loop runs at least once
};

// Why a kernel's dots cannot run on `unit`, as a failure of kind unsupported.
Result<TensorDot> find_tensor_dot(const tile::Kernel& kernel, tile::DotUnit unit);

}  // namespace tilewright::cuda
