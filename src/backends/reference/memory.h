// Views bound to host memory: blocks and single elements, in and out.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <stdexcept>

#include "backends/reference/interpreter.h"
#include "backends/reference/values.h"

namespace tilewright::reference {

// What a running kernel did wrong; run() turns it into a Failure.
struct Trap : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A view with its sizes known.
struct BoundView {
  const tile::ViewParam* param = nullptr;
  char* data = nullptr;
  std::vector<Index> extents, strides;  // elements
  Index element_bytes = 1;
};
std::vector<BoundView> bind_views(const tile::Kernel& kernel, const std::vector<ViewBinding>& bindings,
                                  const std::vector<std::int64_t>& scalars);

// A load or store as at most two loops over the part of the tile that lies inside the view.
struct BlockWalk {
  struct Axis {
    Index extent = 1;          // of the tile
    Index begin = 0, end = 1;  // the part inside the view
    Index stride = 0;          // elements of the view
  };
  Axis outer, inner;
  Index offset = 0;  // of the tile's first element from the view's origin, in elements
  bool whole() const {
    return outer.end - outer.begin == outer.extent && inner.end - inner.begin == inner.extent;
  }
};
BlockWalk walk_block(const tile::Kernel& kernel, const tile::Op& op, const BoundView& view,
                     const Values& values);

void load_block(const tile::Op& op, const BoundView& view, const BlockWalk& walk, Tile& result);
void store_block(const BoundView& view, const BlockWalk& walk, const Tile& value);

// Calls fn(tile element, offset in elements from the view's origin) for what a gather, scatter or atomic_add
// touches.
template <class Fn>
void for_each_indexed(const tile::Kernel& kernel, const tile::Op& op, const BoundView& view,
                      const Values& values, Fn&& fn) {
  const std::size_t first = op.kind == tile::OpKind::gather ? 0 : 1;
  const Tile* mask = op.masked ? &at(values, op.operands.back()) : nullptr;
  const Index size = kernel.type(first == 0 ? op.results[0] : op.operands[0]).size();
  for (std::size_t n = 0; n < static_cast<std::size_t>(size); ++n) {
    if (mask && mask->i[n] == 0) continue;
    Index offset = 0;
    for (std::size_t d = 0; d < view.extents.size(); ++d)
      offset += at(values, op.operands[first + d]).i[n] * view.strides[d];
    fn(n, offset);
  }
}

void gather(const tile::Kernel& kernel, const tile::Op& op, const BoundView& view, Values& values);
void scatter(const tile::Kernel& kernel, const tile::Op& op, const BoundView& view, const Values& values);
void atomic_add(const tile::Kernel& kernel, const tile::Op& op, const BoundView& view, const Values& values);

}  // namespace tilewright::reference
