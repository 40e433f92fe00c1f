// The tiles of a chain of dots on tensor cores: as large as what a program holds in registers and shared
// memory lets them be.
#pragma once

#include "passes/nest/dot_axes.h"
#include "passes/tiling/choose_dot_tiles.h"

#include <optional>

namespace tilewright::passes {

// What multiplies in a target's chains: wgmma, which the copy engine feeds (sm_90a), or mma.sync, whose
// threads copy the blocks themselves (sm_80 and later).
enum class ChainUnit : unsigned char { none, mma, wgmma };
ChainUnit chain_unit(const tile::Target& target);

inline constexpr Index kPanelBytes = 128;  // rows of a block, as they are copied
inline Index panel_of(DType dtype) { return kPanelBytes / static_cast<Index>(size_bytes(dtype)); }

// Of a dot inside the loop; and whether one is walked in blocks of its depth, and how long these are.
Index depth_of(const GroupProgram& program, const Sym& inner_dot);
bool is_deep(const GroupProgram& program);
inline constexpr Index kDeepBlock = 64;  // of 16 bits a row of kPanelBytes

// Tensor cores keep about 14 bits of what they add up of 8-bit floats: the product of each block is added by
// itself.
inline bool adds_apart(const Sym& dot) { return is_f8(dot.meet[0]); }

// None: a chain that the target's tensor cores have no room for.
std::optional<DotTiles> chain_tiles(const GroupProgram& program, const DotAxes& axes,
                                    const DotProblem& problem, const tile::Target& target);

}  // namespace tilewright::passes
