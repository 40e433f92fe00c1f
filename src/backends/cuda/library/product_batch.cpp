// Merging batch axes.
#include "backends/cuda/library/product_batch.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright::cuda {

namespace {

// Whether `outer` goes on where `inner` ends, in all three matrices.
bool goes_on(const BatchAxis& outer, const BatchAxis& inner) {
  return outer.a == inner.count * inner.a && outer.b == inner.count * inner.b &&
         outer.d == inner.count * inner.d;
}

bool becomes_rows(Product& p, const BatchAxis& axis) {
  if (axis.b != 0) return false;
  if (p.m == 1) p.a.row_stride = axis.a, p.d.row_stride = axis.d;
  if (axis.a != p.m * p.a.row_stride || axis.d != p.m * p.d.row_stride) return false;
  p.m *= axis.count;
  return true;
}

bool becomes_columns(Product& p, const BatchAxis& axis) {
  if (axis.a != 0) return false;
  if (p.n == 1) p.b.column_stride = axis.b, p.d.column_stride = axis.d;
  if (axis.b != p.n * p.b.column_stride || axis.d != p.n * p.d.column_stride) return false;
  p.n *= axis.count;
  return true;
}

}  // namespace

bool merge_batch(Product& product, std::vector<BatchAxis> axes) {
  std::erase_if(axes, [](const BatchAxis& axis) { return axis.count == 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const BatchAxis& x, const BatchAxis& y) { return std::abs(x.d) < std::abs(y.d); });
  std::vector<BatchAxis> left;  // inner ones first
  for (const BatchAxis& axis : axes) {
    if (!left.empty() && goes_on(axis, left.back()))
      left.back().count *= axis.count;
    else
      left.push_back(axis);
  }
  std::erase_if(left, [&](const BatchAxis& axis) {
    return becomes_rows(product, axis) || becomes_columns(product, axis);
  });
  if (left.size() > 1) return false;
  if (left.empty()) return true;
  product.batch = left[0].count;
  product.a.batch_stride = left[0].a, product.b.batch_stride = left[0].b, product.d.batch_stride = left[0].d;
  return true;
}

}  // namespace tilewright::cuda
