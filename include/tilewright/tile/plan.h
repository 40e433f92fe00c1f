// Plan: what the compiler hands to the runtime: kernels, buffers and the order of launches. Nothing of graphs
// is left.
#pragma once

#include <tilewright/tile/kernel.h>

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// Bytes that every buffer begins at a multiple of: Backend::allocate promises it, views are written for it.
inline constexpr Index kBufferAlign = 256;

struct PlanBuffer {
  enum class Role { input, output, temporary };
  Role role = Role::temporary;
  int position = -1;  // among the inputs or outputs; -1 for temporaries
  DType dtype = DType::f32;
  Index elements = 0;
  Index arena_offset = -1;  // bytes into the plan's arena, temporaries only
  friend bool operator==(const PlanBuffer&, const PlanBuffer&) = default;
};

struct ViewBinding {
  int buffer = -1;
  Index offset = 0;  // elements from the buffer's start to the view's coordinate 0
  friend bool operator==(const ViewBinding&, const ViewBinding&) = default;
};

struct PlanStep {
  enum class Kind { launch, zero, copy };
  Kind kind = Kind::launch;
  int kernel = -1;                 // launch
  std::vector<ViewBinding> views;  // launch
  std::vector<std::int64_t> scalars;
  int buffer = -1;  // zero: filled with zero bytes; copy: to
  int from = -1;    // copy: from
  // Launches the same kernel over the same grid as the step before it and does not wait for that one: both,
  // and others that stand so, may run at once.
  bool beside_previous = false;
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

struct Plan {
  std::vector<Kernel> kernels;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  Index arena_bytes = 0;
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace tilewright::tile
#pragma GCC visibility pop
