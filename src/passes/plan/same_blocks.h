// Whether a kernel may read and write one memory: what each of its programs reads there is what the same
// program writes, block for block, and it has read a block before it writes it.
#pragma once

#include <tilewright/tile/kernel.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::passes {

// Why the memory of these views, of which some are read and others written, may not be the same; empty where
// it may. What is not affine, or of a size that the launch does not tell, is taken to meet.
std::string why_not_same_memory(const tile::Kernel& kernel, const std::vector<std::int64_t>& scalars,
                                const std::vector<int>& views);

// The kernel with the first of these views that it writes in the place of them all, which backends read and
// write in the order of its text. `kept` is that view; the others are no longer among the parameters.
struct OneView {
  tile::Kernel kernel;
  int kept = -1;  // as numbered before
};
OneView with_one_view(const tile::Kernel& kernel, const std::vector<int>& views);

}  // namespace tilewright::passes
