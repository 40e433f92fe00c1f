// Loops that run once become straight-line code: what they carry needs no memory between rounds.
#pragma once

#include <tilewright/tile/kernel.h>

namespace tilewright::cpu {

// The kernel with the bodies of such loops in their places. Only the bounds that are constants are known.
tile::Kernel inline_single_rounds(tile::Kernel kernel);

}  // namespace tilewright::cpu
