// Kernels that do the same to buffers of other names, as those of a network's layers do, get one text, which
// is compiled once.
#pragma once

#include <tilewright/tile/kernel.h>

#include <map>
#include <vector>

namespace tilewright::passes {

// The kernel with the names of `first`, its own and its views'.
void take_names(tile::Kernel& kernel, const tile::Kernel& first);

class SharedText {
 public:
  // Gives `kernel` the names of the first of `known` that differs from it in names alone, of itself or of its
  // views. The caller adds it to the end of `known` then.
  void name_like_its_equal(tile::Kernel& kernel, const std::vector<tile::Kernel>& known);

 private:
  std::multimap<std::size_t, std::size_t> places_;  // in `known`, by what a comparison would see first
};

}  // namespace tilewright::passes
