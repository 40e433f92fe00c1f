// generalise: kernels that take sizes as arguments, from two plans of one function at two sizes.
//
// Lowering works on constant sizes. What a plan owes to a size is found by comparison: where the plans at two
// sizes have the same kernels but for numbers, those numbers become scalar parameters, and each launch passes
// its own. A plan of a third size gives the same kernels, so that only its numbers are new: nothing is
// compiled.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/tile/plan.h>

namespace tilewright::passes {

// `plan` with scalar parameters where `other` has another number. Scalar constants of i64, f32 and f64,
// extents, strides and grids may differ; a Failure names what differs otherwise (a tile's shape, an op).
Result<tile::Plan> generalise(const tile::Plan& plan, const tile::Plan& other);

// `plan` with the kernels of `general`, a plan of generalise(), whose parameters take its numbers: what this
// plan is made of, without new kernels. A Failure where a kernel is not one of those that general's stands
// for.
Result<tile::Plan> fitted(const tile::Plan& general, const tile::Plan& plan);

}  // namespace tilewright::passes
