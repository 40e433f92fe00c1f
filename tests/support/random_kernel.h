// Random well-formed kernels for tests that hold for every kernel: text round trip, backends against the
// interpreter. The same seed gives the same kernel (in
// one build: compilers differ in the order in which they evaluate arguments).
#pragma once

#include <tilewright/tile/kernel.h>

#include <cstdint>
#include <vector>

namespace tilewright::test {

struct RandomKernelOptions {
  int steps = 10;  // ops are a few times as many
  // Element types of input views; f64 and integers are computed with too.
  std::vector<DType> input_dtypes = {DType::f32,    DType::f32,    DType::bf16, DType::f16,
                                     DType::f8e4m3, DType::f8e5m2, DType::f64,  DType::i32,
                                     DType::i64,    DType::i8,     DType::u8,   DType::boolean};
  // Tile extents are drawn from these; a tile of rank 2 has at most `max_tile` elements.
  std::vector<Index> extents = {1, 3, 7, 17, 64, 100};
  Index max_tile = 6400;
  bool loops = true, branches = true, gathers = true, scatters = true, atomics = true, scans = true,
       dots = true, random = true, in_place = true, wide = true /* f64 and i64 arithmetic */;
};

struct RandomKernel {
  tile::Kernel kernel;
  std::vector<std::int64_t> scalars;
};

// One or two input views, one or two grid axes, ragged edges, reductions over either axis, loops with carried
// tiles, scans, branches, gathers with masks; every program writes its own elements.
RandomKernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options = {});

}  // namespace tilewright::test
