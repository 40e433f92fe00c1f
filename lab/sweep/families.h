// The families of drawn programs: each a function that drafts one of its kind. To add one: the function in a
// file of families/, its declaration here and its row in families.cpp.
#pragma once

#include <span>

#include "sweep/draft.h"

namespace tilewright::sweep {

struct Family {
  const char* name;
  const char* doc;
  double weight;  // how often it is drawn
  void (*draft)(Draft& d);
};

std::span<const Family> all_families();
// Throws Error for a name that none has.
const Family& family_named(const std::string& name);

// families/pointwise.cpp
void pointwise(Draft& d);
void views(Draft& d);
// families/rows.cpp
void softmax_rows(Draft& d);
void norm(Draft& d);
void norm_gradient(Draft& d);
// families/channels.cpp
void channel_norm(Draft& d);
// families/reductions.cpp
void reduction(Draft& d);
void scan(Draft& d);
void argmax_rows(Draft& d);
// families/products.cpp
void matmul(Draft& d);
void matmul_batched(Draft& d);
void matmul_gradient(Draft& d);
// families/attention.cpp
void rotary(Draft& d);
void attention(Draft& d);
void attention_gradient(Draft& d);
// families/indexing.cpp
void embedding(Draft& d);
void embedding_gradient(Draft& d);
// families/losses.cpp
void loss(Draft& d);
void loss_gradient(Draft& d);
// families/training.cpp
void optimizer(Draft& d);
void mlp(Draft& d);
void mlp_gradient(Draft& d);
void block(Draft& d);
void block_gradient(Draft& d);

}  // namespace tilewright::sweep
