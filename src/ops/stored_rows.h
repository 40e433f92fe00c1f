// How a value's elements lie in memory: row-major, and rows further apart than they are long where a copy
// says so, for units that read rows from aligned places only.
#pragma once

#include "ir/op.h"

namespace tilewright::ops {

// The attribute of a copy (a cast) whose rows, along the last axis, lie so many elements apart in memory. Its
// value is the same without.
inline constexpr const char* kPitch = "pitch";

// The attribute of a copy of a concat whose parts are computed where they lie in it: it stays a kernel of its
// own, so that it has none (passes/pipeline.cpp). Parts along the last axis have its rows' pitch.
inline constexpr const char* kPlaced = "placed";

// The attribute of a sum over a product's batch that stays one, where rewrites would make the product's depth
// longer (passes/graph/sums_apart.h).
inline constexpr const char* kApart = "apart";

bool has_pitch(const ir::Node& node);

// The shape whose row-major places the value's elements have: its own, or with the pitch as the last extent.
Shape stored_shape(const ir::Node& node);

}  // namespace tilewright::ops
