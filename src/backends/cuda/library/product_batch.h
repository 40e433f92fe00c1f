// Batch axes of a product as libraries take them: one, with a stride for each matrix.
#pragma once

#include "backends/cuda/library/product.h"

#include <vector>

namespace tilewright::cuda {

// An axis along which products repeat, and the elements from one to the next.
struct BatchAxis {
  Index count = 1;
  Index a = 0, b = 0, d = 0;
};

// Gives a product of one batch its batch axes: those that lie behind one another become one, and one whose b
// (a) is the same for all of it becomes rows (columns) where these go on. False where more than one is left.
bool merge_batch(Product& product, std::vector<BatchAxis> axes);

}  // namespace tilewright::cuda
