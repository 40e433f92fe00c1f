// One function per kind of target.
#include "passes/tiling/choose_dot_tiles.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <span>

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

// The same, with at most two numbers of splits for each edge, so that what is measured differs in kind.
std::vector<DotTiles> best_of_each(std::vector<RankedTiles> all) {
  constexpr auto kMostAlike = 2;
  std::stable_sort(all.begin(), all.end(),
                   [](const RankedTiles& a, const RankedTiles& b) { return a.cost < b.cost; });
  std::vector<RankedTiles> kept;
  for (const RankedTiles& r : all)
    if (std::count_if(kept.begin(), kept.end(), [&](const RankedTiles& k) {
          return k.tiles.bm == r.tiles.bm && k.tiles.bn == r.tiles.bn;
        }) < kMostAlike)
      kept.push_back(r);
  return best_first(std::move(kept));
}

// --- CPU: tw_cpu/dot.h packs blocks of both operands and keeps 6 rows and a few vectors of c in registers;
// tw_cpu/dot_few.h reads an operand once, where it stands, if the other one has fewer rows than that.
constexpr Index kRegisterRows = 6;

// Times in cycles of a core that starts one multiplication of vectors a cycle.
// Per element packed and per element of c that is zeroed, stored and loaded again:
// docs/notes/2026-11-21-cpu-gemm.md.
constexpr double kPackCycles = 0.5, kResultCycles = 1, kProgramCycles = 1000;
constexpr double kMergeCycles = 8000;  // a second kernel's start on all cores
// A block's b fills half of L2 (256 x 512 x 4 bytes of 1 MiB), its c may reach into L3.
constexpr Index kMostRows = 516, kMostColumns = 512, kDepthBytes = 1024;

// Blocks of about `most`, all alike up to rounding to whole `unit`s.
Index even_block(Index size, Index most, Index unit) {
  const Index parts = std::max<Index>((size + most / 2) / most, 1);
  return std::min(round_up(ceil_div(size, parts), unit), size);
}

// Fewer blocks than cores: cores share what they sum, if it is long.
DotTiles few_blocks(const DotProblem& p, DotTiles tiles, const tile::Target& target) {
  constexpr Index kLong = 1 << 14;  // of k, for each part: a few µs of memory time
  const Index blocks = p.batch * ceil_div(p.m, tiles.bm) * ceil_div(p.n, tiles.bn);
  if (p.splits && blocks < target.units)
    tiles.splits = std::clamp<Index>(target.units / blocks, 1, std::max<Index>(p.k / kLong, 1));
  return tiles;
}

// Of the large operand, where what is summed lies together: so many of its rows, each walked so far.
constexpr Index kRowsAlong = 256, kLongWalk = 4096;
// Where it lies across, each element of c is one chain of additions as long as the walk, not one of each
// lane.
constexpr Index kShortWalk = 512;

// Few rows (or a column): the large operand streams from memory, so only its order and its share per core
// matter.
DotTiles few_rows(const DotProblem& p, const tile::Target& target) {
  const Index columns = p.batch >= target.units ? p.n : ceil_div(p.n, Index{target.units});
  if (p.b_by_k)
    return few_blocks(p, {p.m, even_block(columns, kRowsAlong, 4), even_block(p.k, kLongWalk, 16)}, target);
  // Eight rows of b at a time are as many streams as prefetchers follow; their part of c stays in L1.
  return few_blocks(
      p, {p.m, std::min(round_up(even_block(columns, 2048, 1), 64), p.n), std::min<Index>(8, p.k)}, target);
}
DotTiles one_column(const DotProblem& p, const tile::Target& target) {
  const Index rows = p.batch >= target.units ? p.m : ceil_div(p.m, Index{target.units});
  const Index depth = p.by_k ? kLongWalk : kShortWalk;
  return few_blocks(p, {even_block(rows, kRowsAlong, 4), 1, even_block(p.k, depth, 16)}, target);
}

std::vector<DotTiles> cpu_tiles(const DotProblem& p, const tile::Target& target) {
  if (target.any_size)
    return {{std::min<Index>(128, p.m), std::min<Index>(128, p.n), std::min<Index>(256, p.k)}};
  if (p.n == 1) return {one_column(p, target)};
  if (p.m < kRegisterRows && !p.whole_n) return {few_rows(p, target)};
  const Index lanes = target.vector_bytes / 4, bytes = static_cast<Index>(size_bytes(p.dtype));
  const bool widened = bytes == 2 && target.vector_bytes < 64;
  const Index bk = even_block(p.k, kDepthBytes / (widened ? 4 : bytes), 16);
  std::vector<RankedTiles> all;
  const auto consider = [&](Index bm, Index bn, Index splits) {
    if ((p.whole_m && bm < p.m) || (p.whole_n && bn < p.n)) return;
    const Index programs = p.batch * ceil_div(p.m, bm) * ceil_div(p.n, bn) * splits;
    const double rows = static_cast<double>(bm), columns = static_cast<double>(round_up(bn, lanes)),
                 depth = static_cast<double>(ceil_div(p.k, splits)), packed = static_cast<double>(bytes) / 4;
    const double multiply = rows * columns * depth / static_cast<double>(lanes) * packed;
    const double pack = kPackCycles * (rows + columns) * depth * packed;
    const double cycles = static_cast<double>(ceil_div(programs, Index{target.units})) *
                          (multiply + pack + kResultCycles * rows * columns + kProgramCycles);
    const double merge =
        splits == 1
            ? 0
            : kMergeCycles + kResultCycles * static_cast<double>(splits * p.batch * p.m * p.n) / target.units;
    all.push_back({{bm, bn, bk, splits}, cycles + merge});
  };
  for (Index i = ceil_div(p.m, kMostRows), tried = 0; tried < 32 && i <= p.m; ++i, ++tried)
    for (Index j = ceil_div(p.n, kMostColumns), other = 0; other < 32 && j <= p.n; ++j, ++other)
      for (Index splits = 1; splits <= (p.splits ? Index{target.units} : 1) && splits * bk <= p.k; ++splits)
        consider(std::min(round_up(ceil_div(p.m, i), kRegisterRows), p.m),
                 std::min(round_up(ceil_div(p.n, j), lanes), p.n), splits);
  return best_first(std::move(all));
}

constexpr Index kDepth = 64;  // of the blocks of 16 bits that tensor cores take
constexpr Index kDepthBytesOfTensorCores = 128;
constexpr Index kFewestBlocks = 4;  // of k for each of the programs that share it

}  // namespace

// The programs write their sums, all at the same time, and the second kernel reads them.
double merge_us(const DotProblem& p, Index splits, const tile::Target& target) {
  if (splits == 1) return 0;
  const double bytes = 4 * static_cast<double>(splits * p.batch * p.m * p.n);
  const bool cached = 2 * bytes < static_cast<double>(target.cache_bytes);
  const double read_s = bytes / (cached ? target.cache_bytes_per_s : target.memory_bytes_per_s);
  // In one burst, beside which nothing is computed: of 128x8192x8192, 128x192 in 3 parts took 47.9 us, of
  // 8x8192x8192 64x256 in 4 parts 37.9 (docs/notes/2026-11-22-sixth-h200.md).
  constexpr double kBurst = 0.4;
  return (target.launch_s + bytes / (kBurst * target.memory_bytes_per_s) + read_s) * 1e6;
}

namespace {

// Numbers of programs worth trying for one sum: as many as two waves of the machine have room for.
Index most_splits(const DotProblem& p, Index programs, Index bk, const tile::Target& target) {
  if (!p.splits || target.any_size) return 1;
  return std::clamp<Index>(2 * target.units / programs, 1, std::max<Index>(p.k / (kFewestBlocks * bk), 1));
}

// Of the tiles whose accumulators fit the registers, and of the ways to share k, what the model finds
// fastest; a tile may be larger than the problem, the rest of it is zeros.
std::vector<DotTiles> tensor_tiles(const DotProblem& p, const tile::Target& target) {
  static constexpr DotTiles kTiles[] = {{128, 256, kDepth}, {128, 192, kDepth}, {128, 128, kDepth},
                                        {256, 128, kDepth}, {128, 64, kDepth},  {64, 256, kDepth},
                                        {64, 128, kDepth},  {64, 64, kDepth},   {64, 32, kDepth}};
  // 8-bit floats: two accumulators a thread (wgmma_promoted).
  static constexpr DotTiles kPromoted[] = {{128, 192, kDepth}, {128, 128, kDepth}, {128, 64, kDepth},
                                           {64, 192, kDepth},  {64, 128, kDepth},  {64, 64, kDepth},
                                           {64, 32, kDepth}};
  const Index bytes = static_cast<Index>(size_bytes(p.dtype));
  constexpr Index kSwath = 16;
  // Few rows of a: b streams. Where its columns lie together, a block's rows are as wide as the tile; else as
  // deep as the copy engine's promotion makes them. With 128 rows 128x192 in 3 parts took 46.7 us and what
  // this term preferred, 128x256 in 4, 52.8 (docs/notes/2026-11-21-fourth-h200.md).
  constexpr Index kFewRows = 64, kPromotedBytes = 256;
  constexpr double kInstructionsAnOp = 1.2;  // gelu and its bias are 10, of which ptxas makes 12
  std::vector<RankedTiles> all;
  for (DotTiles t :
       is_f8(p.dtype) ? std::span<const DotTiles>(kPromoted) : std::span<const DotTiles>(kTiles)) {
    t.bk = kDepthBytesOfTensorCores / bytes;
    if ((p.whole_m && t.bm < p.m) || (p.whole_n && t.bn < p.n)) continue;
    if (p.b_by_rows && t.bn * bytes < kDepthBytesOfTensorCores) continue;  // whole rows of 128 bytes
    const Index programs = p.batch * ceil_div(p.m, t.bm) * ceil_div(p.n, t.bn);
    const Index piece = p.b_by_rows ? std::min(t.bn, p.n) * bytes : kPromotedBytes;
    for (t.splits = 1; t.splits <= most_splits(p, programs, t.bk, target); ++t.splits) {
      tile::TensorTiles tiles{.bm = t.bm,
                              .bn = t.bn,
                              .k = ceil_div(p.k, t.splits),
                              .operand_bytes = bytes,
                              .programs = static_cast<double>(programs * t.splits),
                              .swath = std::min(kSwath, ceil_div(p.m, t.bm)),
                              .inside_m = p.m,
                              .inside_n = p.n,
                              .piece_bytes = p.m <= kFewRows ? piece : 0};
      if (t.splits == 1) tiles.leaving_cycles = tile::leaving_cycles(kInstructionsAnOp * p.ops_after);
      double us = tile::tensor_tiles_us(tiles, target);
      tiles.ping_pong = !is_f8(p.dtype) && tile::fits_ping_pong(t.bm, t.bn);
      if (tiles.ping_pong) us = std::min(us, tile::tensor_tiles_us(tiles, target));
      all.push_back({t, us + merge_us(p, t.splits, target)});
    }
  }
  return best_of_each(std::move(all));
}

// Tiles of fixed edges, by as many programs for one sum as end soonest; their time in µs. `share` is what the
// tile's inner loop reaches of the multiprocessor's peak, `peak` FLOPs a second of all of them.
RankedTiles shared_out(const DotProblem& p, DotTiles tiles, double peak, double share,
                       const tile::Target& target) {
  constexpr double kStartUs =
      2;  // a program's first block, its results, and its sums' way through shared memory
  const Index programs = p.batch * ceil_div(p.m, tiles.bm) * ceil_div(p.n, tiles.bn);
  const double unit_flops_per_us = peak * share / std::max(1, target.units) * 1e-6;
  double best_us = 0;
  Index best = 1;
  for (Index splits = 1; splits <= most_splits(p, programs, tiles.bk, target); ++splits) {
    const double flops = 2.0 * static_cast<double>(tiles.bm * tiles.bn * ceil_div(p.k, splits));
    const double waves = static_cast<double>(ceil_div(programs * splits, Index{target.units}));
    const double us = waves * (flops / unit_flops_per_us + kStartUs) + merge_us(p, splits, target);
    if (best_us == 0 || us < best_us) best = splits, best_us = us;
  }
  tiles.splits = best;
  return {tiles, best_us};
}

// f32 blocks of memory on the ordinary units (dot=fma_blocks): what each size of tile reaches of the units'
// rate (the first measured, docs/notes/2026-11-22-whole-programs.md; the others by their loops' instructions,
// -singles-on-gpus).
struct FmaEdges {
  Index bm, bn;
  double share;
};
constexpr FmaEdges kFmaEdges[] = {{128, 64, 0.62}, {64, 64, 0.58}, {128, 128, 0.58}};

std::vector<DotTiles> fma_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr Index kDeep = 32;
  const auto fits = [&](const FmaEdges& e) {  // the widest is for what a narrower one does not hold
    const bool holds = (!p.whole_m || e.bm >= p.m) && (!p.whole_n || e.bn >= p.n);
    return holds && (e.bn == 64 || (p.whole_n && p.n > 64));
  };
  std::vector<RankedTiles> all;
  for (const FmaEdges& e : kFmaEdges)
    if (fits(e)) {
      if (target.any_size) return {{e.bm, e.bn, kDeep}};
      all.push_back(shared_out(p, {e.bm, e.bn, kDeep}, target.flops_per_s, e.share, target));
    }
  return best_first(std::move(all));
}

bool fills_fma_tiles(const DotProblem& p) {
  constexpr Index kHalfTile = 32;  // smaller problems leave most of a tile empty
  return p.dtype == DType::f32 && p.in_memory && std::min({p.m, p.n, p.k}) >= kHalfTile;
}

// Of products of which an operand is computed, and of those in chains: 0.3 to 0.34 of the GPT-2 block's
// (docs/notes/2026-11-21-third-h200.md, 2026-11-22-whole-programs.md).
constexpr double kShareOfFma = 0.3;

std::vector<DotTiles> cuda_tiles(const DotProblem& p, const tile::Target& target) {
  if (on_tensor_cores(p, target))
    return target.any_size
               ? std::vector{DotTiles{128, 128,
                                      kDepthBytesOfTensorCores / static_cast<Index>(size_bytes(p.dtype))}}
               : tensor_tiles(p, target);
  constexpr Index kFewest = 9;  // rows of mma.sync's 16; fewer are sums (dot_as_sums.h)
  const bool narrow = p.dtype == DType::bf16 || p.dtype == DType::f16, tf32 = multiplied_as_tf32(p, target);
  if (tf32 || (narrow && p.in_memory && p.m >= kFewest && p.n >= kFewest && p.k >= kFewest)) {  // mma.sync
    const bool many = p.batch * ceil_div(p.m, 128) * ceil_div(p.n, 128) >= target.units;
    const bool held = (p.whole_m && p.m > 64) || (p.whole_n && p.n > 64);
    const Index edge = many || held || target.any_size ? 128 : 64;
    constexpr double kShareOfMma = 0.3;  // docs/notes/2026-11-21-h200-gemm.md
    const Index bytes = static_cast<Index>(size_bytes(p.dtype));
    return {shared_out(p, {edge, edge, kDepthBytesOfTensorCores / bytes},
                       target.matrix_flops_per_s * 2 / static_cast<double>(bytes), kShareOfMma, target)
                .tiles};
  }
  if (fills_fma_tiles(p)) return fma_tiles(p, target);
  const auto edge = [](Index size, bool whole) { return whole ? size : std::min<Index>(64, size); };
  return {shared_out(p, {edge(p.m, p.whole_m), edge(p.n, p.whole_n), std::min<Index>(16, p.k)},
                     target.flops_per_s, kShareOfFma, target)
              .tiles};
}

}  // namespace

// 16-bit operands of which the copy engine brings whole rows; 8-bit floats and integers, and tf32, whose rows
// are those of k.
// Fewer than 64 rows stand beside zeros.
bool on_tensor_cores(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 2, kFewestDeep = 16;
  const bool of16 = p.dtype == DType::bf16 || p.dtype == DType::f16;
  const bool of8 = (is_f8(p.dtype) || p.dtype == DType::i8) && p.by_k;
  const bool of32 = multiplied_as_tf32(p, target) && p.by_k;
  return target.arch == "sm_90a" && (of16 || of8 || of32) && p.copied && p.m >= kFewest && p.n >= kFewest &&
         p.k >= kFewestDeep;
}

// As blocks of memory, and not where a few rows stream: there the ordinary units lose nothing.
bool multiplied_as_tf32(const DotProblem& p, const tile::Target& target) {
  constexpr Index kFewest = 9;
  return p.tf32 && target.kind == tile::TargetKind::cuda && p.dtype == DType::f32 && p.in_memory &&
         p.m >= kFewest && p.n >= kFewest && p.k >= kFewest;
}

double vector_share(const DotProblem& p, const tile::Target& target) {
  if (target.kind != tile::TargetKind::cuda) return 1;
  return fills_fma_tiles(p) ? kFmaEdges[0].share : kShareOfFma;
}

std::vector<DotTiles> rank_dot_tiles(const DotProblem& problem, const tile::Target& target) {
  return target.kind == tile::TargetKind::cuda ? cuda_tiles(problem, target) : cpu_tiles(problem, target);
}

}  // namespace tilewright::passes
