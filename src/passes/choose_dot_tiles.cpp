// One function per kind of target.
#include "passes/choose_dot_tiles.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

DotTiles cpu_tiles(const DotProblem& p) {
  return {std::min<Index>(128, p.m), std::min<Index>(128, p.n), std::min<Index>(256, p.k)};
}

DotTiles cuda_tiles(const DotProblem& p) {
  return {std::min<Index>(64, p.m), std::min<Index>(64, p.n), std::min<Index>(16, p.k)};
}

}  // namespace

DotTiles choose_dot_tiles(const DotProblem& problem, const tile::Target& target) {
  return target.kind == tile::TargetKind::cuda ? cuda_tiles(problem) : cpu_tiles(problem);
}

}  // namespace tilewright::passes
