// Products of 8-bit floats with a scale for each 128 of k, as tile kernels: loops that add up what is
// computed of products, in the shapes that a backend's schedules for them must take.
#pragma once

#include <tilewright/tile/builder.h>

#include <string>

namespace tilewright::tile::samples {

struct ScaledKernel {
  DType dtype = DType::f8e4m3, out = DType::bf16;
  Index m = 128, n = 128, k = 256;
  Index block_m = 128, block_n = 128;
  bool one_scale = false;  // that of the first 128 of k serves all: what a loop costs that loads none
};
std::string to_string(const ScaledKernel& s);
// Views a (m, k), b (n, k), scale_a (k / 128, m), scale_b (n / 128, k / 128), c (m, n); the grid counts
// columns, rows. block_n is at most 128.
Kernel scaled_product(const ScaledKernel& s);

}  // namespace tilewright::tile::samples
