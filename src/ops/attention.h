// Attention as a composition of plain ops: scores, and what is made of them. Between the two stands what the
// caller does with scores and masks.
#pragma once

#include "ops/functions.h"

namespace tilewright::ops {

// Throws Error unless q is (B, H, Tq, D), k (B, Hkv, Tk, D) and v (B, Hkv, Tk, Dv), of one float type, with H
// a multiple of Hkv.
void check_attention(Value q, Value k, Value v);

// scale · q · kᵀ (B, H, Tq, Tk) in f32, of f64 operands in f64. With Hkv < H every H / Hkv query heads, one
// after another, share a head of k.
Value attention_scores(Value q, Value k, double scale);

struct AttendOptions {
  std::optional<Value> mask = {};  // bool, broadcasts to the scores' shape: where false nothing is attended
  double dropout = 0;              // probability with which a weight is dropped, [0, 1)
  std::optional<Value> seed = {};  // i64[], of the dropout
  DType result = DType::f32;
};
struct Attended {
  Value out;  // (B, H, Tq, Dv) softmax(scores) · v; 0 in rows with nothing to attend
  Value lse;  // (B, H, Tq) log Σ exp(scores), f32 or f64; -inf in rows with nothing to attend
};
Attended attend(Value scores, Value v, const AttendOptions& options);

}  // namespace tilewright::ops
