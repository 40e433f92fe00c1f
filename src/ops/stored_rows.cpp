#include "ops/stored_rows.h"

namespace tilewright::ops {

bool has_pitch(const ir::Node& node) { return node.op->kind == ir::OpClass::cast && node.attrs.has(kPitch); }

Shape stored_shape(const ir::Node& node) {
  Shape shape = node.type.shape;
  if (has_pitch(node)) shape[shape.rank() - 1] = node.attrs.integer(kPitch);
  return shape;
}

}  // namespace tilewright::ops
