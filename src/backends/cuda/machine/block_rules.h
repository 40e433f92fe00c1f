// What of memory the copy engine (TMA) and copies of 16 bytes (cp.async) bring as a block, in rows of 128
// bytes that are swizzled as a whole. Passes read the rules in tile::Target, the analysis of kernels here.
// Source: PTX ISA 9.0, "Tensors"; blocks of five axes are not printed.
#pragma once

#include <tilewright/tile/matrix_unit.h>

namespace tilewright::cuda {

inline constexpr tile::BlockRules kBlockRules{
    .align_bytes = 16, .most_axes = 4, .row_bytes = 128, .line_bytes = 128};

}  // namespace tilewright::cuda
