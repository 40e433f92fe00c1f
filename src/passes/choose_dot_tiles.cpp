// One function per kind of target.
#include "passes/choose_dot_tiles.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

DotTiles cpu_tiles(const DotProblem& p) {
  return {std::min<Index>(128, p.m), std::min<Index>(128, p.n), std::min<Index>(256, p.k)};
}

// What the copy engine and the tensor cores take: 16-bit operands whose rows are whole 16 bytes. Of the tiles
// whose accumulators fit the registers the one that the model finds fastest; a tile may be larger than the
// problem, the rest of it is zeros.
bool on_tensor_cores(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 16, kAligned = 8;
  return target.arch == "sm_90a" && (p.dtype == DType::bf16 || p.dtype == DType::f16) && p.m >= kFewest &&
         p.n >= 2 * kFewest && p.k >= kFewest && p.n % kAligned == 0 && p.k % kAligned == 0;
}

DotTiles tensor_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr DotTiles kTiles[] = {{128, 256, 64}, {128, 192, 64}, {128, 128, 64}, {256, 128, 64},
                                 {128, 64, 64},  {64, 128, 64},  {64, 64, 64},   {64, 32, 64}};
  constexpr Index kSwath = 16;
  DotTiles best = kTiles[0];
  double best_us = 0;
  for (const DotTiles& t : kTiles) {
    const Index programs = p.batch * ceil_div(p.m, t.bm) * ceil_div(p.n, t.bn);
    const double us = tile::tensor_tiles_us({.bm = t.bm,
                                             .bn = t.bn,
                                             .k = p.k,
                                             .programs = static_cast<double>(programs),
                                             .swath = std::min(kSwath, ceil_div(p.m, t.bm))},
                                            target);
    if (best_us == 0 || us < best_us) best = t, best_us = us;
  }
  return best;
}

DotTiles cuda_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 16;
  const bool narrow = p.dtype == DType::bf16 || p.dtype == DType::f16;
  if (on_tensor_cores(p, target)) return tensor_tiles(p, target);
  if (narrow && p.m >= kFewest && p.n >= kFewest && p.k >= kFewest) {  // mma.sync
    const Index edge = p.batch * ceil_div(p.m, 128) * ceil_div(p.n, 128) >= target.units ? 128 : 64;
    return {edge, edge, 64};
  }
  return {std::min<Index>(64, p.m), std::min<Index>(64, p.n), std::min<Index>(16, p.k)};
}

}  // namespace

DotTiles choose_dot_tiles(const DotProblem& problem, const tile::Target& target) {
  return target.kind == tile::TargetKind::cuda ? cuda_tiles(problem, target) : cpu_tiles(problem);
}

}  // namespace tilewright::passes
