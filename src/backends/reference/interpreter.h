// The executable meaning of tile IR: runs a kernel on host memory, obviously rather than fast.
//
// - Floats of every type are held in float64. Nothing rounds but `cast` (to its type), `store`, `scatter` and
//   `atomic_add` (to the view's); an f32 sum of a thousand f32 products is exact to float64.
// - Integers and bools are held in int64 and wrapped to their type after each op.
// - reduce, scan and dot combine from left to right. atomic_add takes place in program order.
// - Programs run in any order on the pool, in order without one.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>
#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::reference {

// The memory behind one view.
struct ViewBinding {
  void* data = nullptr;     // of coordinate (0, …, 0)
  Index extent_bytes = 0;   // of the buffer, from `data` on
  Index before_bytes = 0;   // of the buffer in front of `data`, which negative strides reach
  bool initialized = true;  // false: an output; checked runs refuse reads of what was not written
};

struct Options {
  // Reports, with the op's text and the user's place: elements outside the view or its buffer, reads of
  // unwritten elements, elements that two programs write or one writes and another reads, scattered elements
  // that meet. Runs on one thread. Unchecked runs look at two promises alone: a block that is loaded or
  // stored without bounds lies in its view, and so does an element by its index.
  bool checked = false;
  ThreadPool* pool = nullptr;  // kernels with atomic_add run on one thread all the same
};

// `scalars` as tile::scalar_bits gives them. The kernel is verified by its maker.
Status run(const tile::Kernel& kernel, const std::vector<ViewBinding>& views,
           const std::vector<std::int64_t>& scalars, const Options& options = {});

// How far a correct backend may be from the reference.
struct ErrorModel {
  double scale = 1;               // times the error that each op brings
  bool flush_subnormals = false;  // results below the smallest normal number may become 0
};

// For each view one bound per element of its buffer, counted from the buffer's begin; empty for views that
// the kernel does not write. Infinite where rounding may decide what is stored (a comparison too close to
// call): such elements cannot be compared.
struct ErrorBounds {
  std::vector<std::vector<double>> views;
};

// Runs the kernel as run() does and carries beside each value a bound on what rounding in the value's type
// may change: the primitives' ulps, (n - 1) roundings of a sum of n, casts, and their propagation through
// everything that follows.
Result<ErrorBounds> run_with_bounds(const tile::Kernel& kernel, const std::vector<ViewBinding>& views,
                                    const std::vector<std::int64_t>& scalars, const ErrorModel& model = {});

}  // namespace tilewright::reference
