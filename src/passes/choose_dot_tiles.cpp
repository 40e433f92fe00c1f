// One function per kind of target.
#include "passes/choose_dot_tiles.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

constexpr std::size_t kMostRanked = 8;

struct RankedTiles {
  DotTiles tiles;
  double cost = 0;
};

// Of equals, the first.
std::vector<DotTiles> best_first(std::vector<RankedTiles> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const RankedTiles& a, const RankedTiles& b) { return a.cost < b.cost; });
  std::vector<DotTiles> out;
  for (const RankedTiles& r : all)
    if (out.size() < kMostRanked && std::find(out.begin(), out.end(), r.tiles) == out.end())
      out.push_back(r.tiles);
  return out;
}

// --- CPU: tw_cpu/dot.h packs blocks of both operands and keeps 6 rows and a few vectors of c in registers;
// tw_cpu/dot_few.h reads an operand once, where it stands, if the other one has fewer rows than that.
constexpr Index kRegisterRows = 6;

// Times in cycles of a core that starts one multiplication of vectors a cycle.
// Per element packed and per element of c that is zeroed, stored and loaded again:
// docs/notes/2026-11-21-cpu-gemm.md.
constexpr double kPackCycles = 0.5, kResultCycles = 1, kProgramCycles = 1000;
// A block's b fills half of L2 (256 x 512 x 4 bytes of 1 MiB), its c may reach into L3.
constexpr Index kMostRows = 516, kMostColumns = 512, kDepthBytes = 1024;

// Blocks of about `most`, all alike up to rounding to whole `unit`s.
Index even_block(Index size, Index most, Index unit) {
  const Index parts = std::max<Index>((size + most / 2) / most, 1);
  return std::min(round_up(ceil_div(size, parts), unit), size);
}

// Few rows (or a column): the large operand streams from memory, so only its order and its share per core
// matter.
DotTiles few_rows(const DotProblem& p, const tile::Target& target) {
  // Eight rows of b at a time are as many streams as prefetchers follow; their part of c stays in L1.
  const Index columns = p.batch >= target.units ? p.n : ceil_div(p.n, Index{target.units});
  return {p.m, std::min(round_up(even_block(columns, 2048, 1), 64), p.n), std::min<Index>(8, p.k)};
}
DotTiles one_column(const DotProblem& p, const tile::Target& target) {
  const Index rows = p.batch >= target.units ? p.m : ceil_div(p.m, Index{target.units});
  return {even_block(rows, 256, 4), 1, even_block(p.k, 4096, 16)};
}

std::vector<DotTiles> cpu_tiles(const DotProblem& p, const tile::Target& target) {
  if (target.any_size)
    return {{std::min<Index>(128, p.m), std::min<Index>(128, p.n), std::min<Index>(256, p.k)}};
  if (p.n == 1) return {one_column(p, target)};
  if (p.m < kRegisterRows) return {few_rows(p, target)};
  const Index lanes = target.vector_bytes / 4, bytes = static_cast<Index>(size_bytes(p.dtype));
  const bool widened = bytes == 2 && target.vector_bytes < 64;
  const Index bk = even_block(p.k, kDepthBytes / (widened ? 4 : bytes), 16);
  std::vector<RankedTiles> all;
  const auto consider = [&](Index bm, Index bn) {
    const Index programs = p.batch * ceil_div(p.m, bm) * ceil_div(p.n, bn);
    const double rows = static_cast<double>(bm), columns = static_cast<double>(round_up(bn, lanes)),
                 depth = static_cast<double>(p.k), packed = static_cast<double>(bytes) / 4;
    const double multiply = rows * columns * depth / static_cast<double>(lanes) * packed;
    const double pack = kPackCycles * (rows + columns) * depth * packed;
    const double cycles = static_cast<double>(ceil_div(programs, Index{target.units})) *
                          (multiply + pack + kResultCycles * rows * columns + kProgramCycles);
    all.push_back({{bm, bn, bk}, cycles});
  };
  for (Index i = ceil_div(p.m, kMostRows), tried = 0; tried < 32 && i <= p.m; ++i, ++tried)
    for (Index j = ceil_div(p.n, kMostColumns), other = 0; other < 32 && j <= p.n; ++j, ++other)
      consider(std::min(round_up(ceil_div(p.m, i), kRegisterRows), p.m),
               std::min(round_up(ceil_div(p.n, j), lanes), p.n));
  return best_first(std::move(all));
}

// What the copy engine and the tensor cores take: 16-bit operands whose rows are whole 16 bytes. Of the tiles
// whose accumulators fit the registers the one that the model finds fastest; a tile may be larger than the
// problem, the rest of it is zeros.
bool on_tensor_cores(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 16, kAligned = 8;
  return target.arch == "sm_90a" && (p.dtype == DType::bf16 || p.dtype == DType::f16) && p.m >= kFewest &&
         p.n >= 2 * kFewest && p.k >= kFewest && p.n % kAligned == 0 && p.k % kAligned == 0;
}

std::vector<DotTiles> tensor_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr DotTiles kTiles[] = {{128, 256, 64}, {128, 192, 64}, {128, 128, 64}, {256, 128, 64},
                                 {128, 64, 64},  {64, 128, 64},  {64, 64, 64},   {64, 32, 64}};
  constexpr Index kSwath = 16;
  std::vector<RankedTiles> all;
  for (const DotTiles& t : kTiles) {
    const Index programs = p.batch * ceil_div(p.m, t.bm) * ceil_div(p.n, t.bn);
    const double us = tile::tensor_tiles_us({.bm = t.bm,
                                             .bn = t.bn,
                                             .k = p.k,
                                             .programs = static_cast<double>(programs),
                                             .swath = std::min(kSwath, ceil_div(p.m, t.bm))},
                                            target);
    all.push_back({t, us});
  }
  return best_first(std::move(all));
}

std::vector<DotTiles> cuda_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 16;
  const bool narrow = p.dtype == DType::bf16 || p.dtype == DType::f16;
  if (on_tensor_cores(p, target))
    return target.any_size ? std::vector{DotTiles{128, 128, 64}} : tensor_tiles(p, target);
  if (narrow && p.m >= kFewest && p.n >= kFewest && p.k >= kFewest) {  // mma.sync
    const bool many = p.batch * ceil_div(p.m, 128) * ceil_div(p.n, 128) >= target.units;
    const Index edge = many || target.any_size ? 128 : 64;
    return {{edge, edge, 64}};
  }
  return {{std::min<Index>(64, p.m), std::min<Index>(64, p.n), std::min<Index>(16, p.k)}};
}

}  // namespace

std::vector<DotTiles> rank_dot_tiles(const DotProblem& problem, const tile::Target& target) {
  return target.kind == tile::TargetKind::cuda ? cuda_tiles(problem, target) : cpu_tiles(problem, target);
}

}  // namespace tilewright::passes
