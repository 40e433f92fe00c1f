// Factors of products in 8 bits, each with the scales that make its values fill the type's range.
#pragma once

#include "ir/graph.h"

namespace tilewright::passes {

// codes · scale is the value, to the type's rounding. A scale is the largest absolute value of what it
// belongs to over the type's largest number, of the values as they are now (current scaling: P. Micikevicius
// et al., FP8 Formats for Deep Learning, arXiv 2209.05433), so that nothing saturates. What is all zero keeps
// its zeros. Of what holds an infinity or a NaN the scale is none either, and so is all that is multiplied
// with that scale: codes have no infinity.
struct ScaledOperand {
  ir::Value codes, scale;  // the scale f32, as ops::scaled_matmul takes it
};

// One scale for a value of any shape, (1, 1).
ScaledOperand scaled_by_tensor(ir::Value x, DType type);
// A matrix (M, K), filled up with zeros to whole blocks of ops::kScaleBlock along K, has a scale for each row
// of a block, (M, K / block). By squares: (K, N), filled up along both, has a scale for each block × block,
// (K / block, N / block), whose transpose is that of the transposed matrix (DeepSeek-AI, DeepSeek-V3
// Technical Report, arXiv 2412.19437, 3.3.2).
ScaledOperand scaled_by_rows(ir::Value x, DType type);
ScaledOperand scaled_by_squares(ir::Value x, DType type);

}  // namespace tilewright::passes
