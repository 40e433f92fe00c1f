// NumPy's files of one array, .npy: versions 1 to 3 of their header.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <tilewright/tensor/tensor.h>

#pragma GCC visibility push(default)
namespace tilewright {

// The array on the Context's device: f2, f4, f8, i1, i4, i8, u1 and b1 of either byte order, in C or Fortran
// order, and bf16 as ml_dtypes names it, "<V2". Throws Error naming the file and what is wrong with it: it
// cannot be read, is cut short or longer than its header says, its header is none, or its elements are of a
// type that tensors do not have.
Tensor load_npy(Context& context, const std::string& path, const Location& where = Location::current());

// Version 1, C order, little-endian; bf16 as ml_dtypes does, which np.load(path).view(ml_dtypes.bfloat16)
// reads. The file takes its name when it is whole and on the disk: where that fails, an Error says why, and
// what was there before is unchanged. Throws Error for f8e4m3 and f8e5m2 as well, for which the format has no
// name.
void save_npy(const std::string& path, const Tensor& tensor, const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
