// Short forms: how far a primitive may be from its value where only narrow floats are stored of it.
//
// The promise is docs/numerics.md's, "Shortcuts": a value that ends in stores of 16-bit and 8-bit floats
// alone may be computed with a relative error of 2^-16, and a sine, cosine or tanh with one of 2^-10 (a
// quarter unit of bf16) where it ends in bf16 or 8 bits and no sum, which might cancel, lies on the way. This
// is read from the kernel here, apart from what a backend's printer makes of it. Values that loops carry or
// branches choose keep their primitives' bounds.
#pragma once

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::reference {

// For each value the relative error that its primitive may have beside its own bound: 0 where it has none.
std::vector<double> short_form_errors(const tile::Kernel& kernel);

}  // namespace tilewright::reference
