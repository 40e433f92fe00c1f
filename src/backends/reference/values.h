// The values of a running program.
#pragma once

#include <tilewright/tile/kernel.h>

#include <cstdint>
#include <vector>

namespace tilewright::reference {

// One value of the kernel: floats in f, integers and bool in i, row-major.
struct Tile {
  std::vector<double> f;
  std::vector<std::int64_t> i;
  std::vector<double> error;  // bound on |backend - reference| per element; only when bounds are tracked
};

// Indexed by ValueId; an op's result is resized by the op that makes it.
using Values = std::vector<Tile>;

inline Tile& at(Values& values, tile::ValueId id) { return values[static_cast<std::size_t>(id)]; }
inline const Tile& at(const Values& values, tile::ValueId id) { return values[static_cast<std::size_t>(id)]; }
inline std::int64_t scalar(const Values& values, tile::ValueId id) { return at(values, id).i[0]; }

}  // namespace tilewright::reference
