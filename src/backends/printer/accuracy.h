// Accuracy: which values of a kernel may be computed with the hardware's approximate instructions.
//
// The rule: approximation follows the type that is stored. A value that reaches an f32 store, a comparison,
// an index or a rounding to integers is computed to the f32 bound of its primitive. One that only ever ends
// in stores of f16, bf16 or fp8 may use instructions that err by some units in the last place of f32 (2^-16
// or better relative: ex2, rcp, rsqrt .approx). Instructions good to a quarter ulp of bf16 only (tanh.approx,
// 2^-11) serve values that reach their bf16 or fp8 stores through multiplications, divisions, roots and
// selections: these pass a relative error on as it is, while a sum may cancel and show it enlarged.
// One exception: the many terms of Σ e^(x - max x) may be approximate for an f32 sum too; accuracy.cpp has
// the bound.
#pragma once

#include "backends/printer/loop_plan.h"

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::printer {

enum class Accuracy : unsigned char {
  exact,   // the bound of tile/prim.h
  narrow,  // ends in narrow floats: approximate f32 instructions
  coarse,  // ends in bf16 or fp8, and no sum on the way: a quarter ulp of bf16
};

// One entry per value of the kernel.
std::vector<Accuracy> needed_accuracy(const tile::Kernel& kernel);

// The same where a loop computes a value, perhaps again: there only the loop's own uses count.
std::vector<Accuracy> accuracy_in_loop(const tile::Kernel& kernel, const ElementLoop& loop,
                                       const std::vector<Accuracy>& of_values);

}  // namespace tilewright::printer
