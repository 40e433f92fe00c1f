// A cache in pages: the axis that a back-to-back matmul's loop walks lies in pages of one size, and a table
// says where each of them is. A block that lies within one page is a block of memory still, from where the
// table says.
#pragma once

#include "passes/nest/loop_nest.h"

#include <optional>

namespace tilewright::passes {

// The element at place i of an axis in pages is at table[i / size] × the load's dynamic stride + i % size ×
// `stride`.
struct Pages {
  int variable = -1;  // walks the axis
  Index size = 0;
  Index stride = 0;
};

// None where a load reads no pages, or where these hold no whole blocks.
std::optional<Pages> pages_of(const LoopNest& nest, const Expr& load);

// Whether a load's index is checked as a gather's is: outside it reads zeros.
bool checks_its_index(const LoopNest& nest, const Expr& load);

// A load from where an index says that is the same for the whole tile: a block of memory still.
bool picks_a_block(const LoopNest& nest, const Expr& load);

// The variable of a load that reads, from index + that variable on, one row of a matrix after another; else
// -1.
int moved_along(const LoopNest& nest, const Expr& load);

// The most elements, up to `most`, that a block of the walked variable may have to lie within a page of each
// load of the program: `most` or a half, a quarter … of it.
Index block_within_pages(const LoopNest& nest, Index most);

}  // namespace tilewright::passes
