// What a tuner stores of a winner, for all shapes of a bucket, and how it is found again for another of them.
#pragma once

#include <tilewright/tile/kernel.h>

#include <string>
#include <vector>

namespace tilewright::runtime {

struct StoredWinner {
  std::string schedule, tiles;  // as text: "BM=128 BN=256 BK=64"; none for a library's call
  std::string library;          // KernelTuning::library

  static StoredWinner parse(const std::string& text);
  std::string text() const;
  std::vector<tile::ConstParam> tile_constants() const;
};

// What kernels of a shape bucket have in common: what is computed of views whose sizes are rounded up to
// powers of two. Tiles are fitted to the size, and with them change numbers, indices and how many programs
// there are.
std::string shape_bucket(const tile::Kernel& kernel);

// The distance between two kernels' tiles, as of 128 by 256 and 96 by 256: the sum of their ratios'
// logarithms. Infinite if their constants have other names.
double tile_distance(const std::vector<tile::ConstParam>& a, const std::vector<tile::ConstParam>& b);

}  // namespace tilewright::runtime
