// What was fitted to NVIDIA's devices, on an H200 where nothing else is said: a row is a name, its value, and
// where it comes from. The driver tells the rest (target.cpp).
#pragma once

#include "backends/cuda/machine/arch.h"
#include "backends/cuda/machine/block_rules.h"

#include <tilewright/tile/prim.h>
#include <tilewright/tile/target.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tilewright::cuda {

inline constexpr Index kGroupRows = 64;            // of one wgmma: PTX ISA 9.0
inline constexpr Index kDotRoomBytes = 224 << 10;  // of 227 KiB of shared memory; barriers take the rest

// wgmma's time in tiles: docs/notes/2026-11-21-h200-gemm.md, where nothing else is said.
inline constexpr tile::TileRate kWarpgroupRate{
    .clock_hz = 1.45e9,            // what is left of 1.98 GHz at full load, stalls of the pipeline included
    .flops_per_cycle = 4096,       // of a multiprocessor, dense
    .chip_bytes_per_cycle = 128,   // of shared memory
    .chip_share = 0.9,             // what was measured is a tenth better than the sum of reads and writes
    .intake_bytes_per_cycle = 56,  // from L2: 10.7 TB/s for all of them, reached by tiles of 128x128
    // 5000x5000x5000, rows of 10,000 bytes: 629 us by tiles of 128x192, 411 if lines were not straddled
    // (docs/notes/2026-11-24-unaligned-rows.md).
    .second_line = 0.75,
    .group_rows = kGroupRows,
    .step_bytes = kBlockRules.row_bytes,
    .fill_cycles = 1500,
    .store_cycles = 0.045,          // 64 shuffles, 64 conversions, 16 stores a thread of 128x256
    .send_cycles = 0.03,            // 16 stmatrix instead of shuffles and stores (predicted)
    .instructions_per_cycle = 128,  // lanes of a multiprocessor
    .instructions_an_op = 1.2,      // gelu and its bias are 10, of which ptxas makes 12
    // Fitted to four products whose second kernel's share was assumed, not measured
    // (docs/notes/2026-11-21-products-of-few-rows.md): right for 8 rows, wrong for 128, where it is not asked
    // for: there 128x192 in 3 parts took 46.7 us and what this term preferred, 128x256 in 4, 52.8
    // (docs/notes/2026-11-21-fourth-h200.md).
    .opening_bytes = 80,
    .streaming_rows = kGroupRows,
    .streamed_bytes = 256,  // the copy engine's promotion
    .hidden = 3,            // of what no other program of the wave has brought to the cache, a third shows
    .own_tile = kGroupRows * 384,  // 192 registers of each of 128 threads
    .turn_cycles = 200,            // these four: predicted, docs/notes/2026-11-22-ping-pong.md
    .alone_longer = 1.5,
    .alone_believed = 1.03,
    .group_m = 16,
};

// Tensor cores that read shared memory, which the copy engine fills.
inline tile::MatrixUnit warpgroup_unit() {
  // Tiles whose sums two warpgroups hold, in 232 registers a thread; and those whose sums they hold twice,
  // where each block's product is added by itself.
  const std::vector<tile::DotTile> tiles = {{128, 256}, {128, 192}, {128, 128}, {256, 128}, {128, 64},
                                            {64, 256},  {64, 128},  {64, 64},   {64, 32}};
  const std::vector<tile::DotTile> apart = {{128, 192}, {128, 128}, {128, 64}, {64, 192},
                                            {64, 128},  {64, 64},   {64, 32}};
  const auto operands = [&](DType dtype) {
    return tile::MatrixOperands{.dtype = dtype, .fewest = 2, .fewest_depth = 16, .tiles = tiles};
  };
  const auto k_major = [&](DType dtype) {
    tile::MatrixOperands out = operands(dtype);
    out.k_major = true;
    return out;
  };
  const auto of_f8 = [&](DType dtype) {
    tile::MatrixOperands out = k_major(dtype);
    out.added_apart = true;  // the sums keep about 14 bits: docs/numerics.md
    out.tiles = apart;
    return out;
  };
  tile::MatrixOperands bf16 = operands(DType::bf16);
  bf16.two_level_tiles = apart;
  bf16.worth_parts = 0.85;
  tile::MatrixOperands i8 = k_major(DType::i8), tf32 = k_major(DType::f32);
  i8.computed = false;
  tf32.rounded = true;
  tf32.fewest = 9;
  tf32.rate = 0.5;
  tile::MatrixUnit unit{.operands = {std::move(bf16), operands(DType::f16), of_f8(DType::f8e4m3),
                                     of_f8(DType::f8e5m2), std::move(i8), std::move(tf32)},
                        .blocks = kBlockRules,
                        .any_size = {128, 128},
                        .rate = kWarpgroupRate};
  unit.b2b = tile::B2bCuts{
      // Registers beside statistics of the rows and addresses, of 160, 232 and 255 that ptxas gives a thread.
      // Three warpgroups were faster by an eighth: docs/notes/2026-11-21-dot-chains.md.
      .ways = {{.rows = 192,
                .threads = 384,
                .registers = 136,
                .room_bytes = kDotRoomBytes,
                .most_columns = 64,
                .faster = 1.13},
               {.rows = 128, .threads = 256, .registers = 208, .room_bytes = kDotRoomBytes},
               {.rows = 64, .threads = 128, .registers = 216, .room_bytes = kDotRoomBytes}},
      // A product with more to compute on its tiles: 256 columns no longer fit the registers.
      .deep = {128, 192},
      .room_bytes = kDotRoomBytes,
      // Two tiles of the result are in registers: the sum, and the product that is added next, of 256 rows
      // one half after the other. Issue and round: counted, in a round of 64 by 128
      // (docs/notes/2026-11-22-few-rows-and-groups.md).
      .scaled_accumulation = tile::ScaledAccumulationCuts{
          .rows = {256, 128, 64},
          .columns = {128, 64, 32},
          .computed_rows = {128, 64},
          .issue_cycles = 350,  // for each scheduler
          .round_cycles = 700,
          .cycles_per_us = 1.7e3,  // chosen, not measured
      }};
  return unit;
}

// Tensor cores by mma.sync: the warps read blocks of shared memory themselves, which the threads fill.
inline tile::MatrixUnit thread_fed_unit(Index shared_bytes) {
  const std::vector<tile::DotTile> tiles = {{128, 128}, {64, 64}};
  // Fewer than 9 of 16 rows are sums.
  const auto operands = [&](DType dtype) {
    return tile::MatrixOperands{.dtype = dtype, .fewest = 9, .fewest_depth = 9, .tiles = tiles};
  };
  tile::MatrixOperands tf32 = operands(DType::f32);
  tf32.rounded = true;
  tf32.rate = 0.5;
  tile::MatrixUnit unit{.operands = {operands(DType::bf16), operands(DType::f16), std::move(tf32)},
                        .blocks = kBlockRules,
                        .other_blocks = true,
                        .any_size = {128, 128},
                        .share = 0.3};  // docs/notes/2026-11-21-h200-gemm.md
  if (shared_bytes == 0) return unit;
  // A block's: what comes before the first multiple of 1024, and the driver's own KiB, which a multiprocessor
  // has besides for one of them; and what kernels keep for small arrays.
  constexpr Index kKibibyte = 1 << 10, kReserved = 2 * kKibibyte, kStatic = 2 * kKibibyte;
  const Index alone = shared_bytes - kKibibyte - kStatic,
              beside = std::min(alone, (shared_bytes + kKibibyte) / 2 - kReserved);
  // 255 hold these beside fragments of operands, statistics of the rows, and addresses.
  constexpr Index kRegisters = 200;
  unit.b2b = tile::B2bCuts{
      // A warp reads half as often with 32 rows as with 16; eight of them on a multiprocessor hide what each
      // waits for: two programs of four, or one (docs/notes/2026-11-22-mma-chains.md).
      .ways = {{.rows = 128, .threads = 128, .registers = kRegisters, .room_bytes = beside},
               {.rows = 128, .threads = 256, .registers = kRegisters, .room_bytes = alone},
               {.rows = 64, .threads = 128, .registers = kRegisters, .room_bytes = beside},
               {.rows = 64, .threads = 128, .registers = kRegisters, .room_bytes = alone}},
      .fills_units = true,
      .refills_between = true,
      .deep = {128, 128},  // no more columns fit the registers where a warp has 32 rows
      .room_bytes = shared_bytes};
  return unit;
}

inline tile::RowCuts row_cuts() {
  return {
      .elements = 4096,  // of arithmetic: more to a thread, for chains of instructions that overlap
      // One access of 16 bytes for each of 128 threads: of 2^28 f32, 512 elements a program reach 4,279 GB/s,
      // 4096 in 128 threads 3,860 (docs/notes/2026-11-21-first-h200.md).
      .access_bytes = 128 * 16,
      .least_elements = 128,  // one for each thread: what one does in turn is all the time of a small kernel
      .small_programs = 1,    // docs/notes/2026-11-28-small-kernels.md
      // 3,700 kernels of 160 to 3 million elements: docs/notes/2026-11-30-blocks-of-small-kernels.md.
      .small_tiles = {{{256, 0.06}, {512, 0.45}, {1024, 3}, {2048, 16}}},
      .turned_edge = 64,      // of f32 4 cache lines
      .picked_elements = 64,  // chosen, not measured
      .loop_elements = 4096,
      .joined_elements = 4096,
      .joined_programs = 2,         // chosen, not measured
      .group_elements = 512,        // shorter than the threads of a program read at once
      .grouped_elements = 1 << 15,  // 64 for each of 512 threads
      .column_bytes = 512,          // what a warp reads at once
      .column_round_bytes = 8192,   // narrow types are too few bytes else
      .strip_columns = 32,
      .shared_programs = 8,        // chosen, not measured
      .shared_elements = 1 << 16,  // chosen, not measured
      .shares_outer = true,        // what its rounds share, as a group's scale, is read by one program
      .cluster_programs = 3,       // one row of 8192² takes 35.1 µs by 512 blocks, 35.4 by 256
      .cluster_threads = 1024,     // docs/notes/2026-11-22-sums-over-clusters.md
      .cluster_vectors = 4,
      .cluster_piece_bytes = 256,
  };
}

// Tiles of dot=fma_blocks, with the threads of a program and those that share a row. Shares are of the
// ordinary units' rate: docs/notes/2026-11-26-f32-products.md.
struct FmaTile {
  tile::DotTile tile;
  Index threads = 128, threads_per_row = 16;
};
inline constexpr FmaTile kFmaTiles[] = {
    {{.rows = 64, .columns = 128, .share = 0.70, .alone = 0.59, .by_k = 0.86}, 128, 16},
    {{.rows = 64, .columns = 256, .share = 0.73, .alone = 0.38, .by_k = 0.81}, 128, 16},
    {{.rows = 128, .columns = 128, .share = 0.70, .alone = 0.37, .by_k = 0.91}, 128, 8},
    {{.rows = 64, .columns = 64, .share = 0.57, .alone = 0.47, .by_k = 0.86}, 128, 8},
    {{.rows = 32, .columns = 128, .share = 0.69, .alone = 0.50, .by_k = 0.78}, 64, 16},
    {{.rows = 32, .columns = 32, .share = 0.43, .alone = 0.27, .by_k = 0.92}, 64, 8},
};

inline tile::VectorDots vector_dots() {
  std::vector<tile::DotTile> tiles;
  for (const FmaTile& t : kFmaTiles) tiles.push_back(t.tile);
  return {
      .tiles = std::move(tiles),
      .fewest = 16,
      .depth = 16,
      .edge = 64,
      .edge_depth = 16,
      // Products with a computed operand, and those in back-to-back matmuls: 0.3 to 0.34 of the GPT-2 block's
      // (docs/notes/2026-11-21-third-h200.md, 2026-11-22-whole-programs.md).
      .share = 0.3,
      .sum_rows = 8,  // each takes a register for every element that a thread holds of a block
      .sums = 64,
  };
}

// --- schedules of element loops (schedule/estimate.cpp): fitted to runs of the lab's kernels,
// docs/notes/2026-11-21-first-h200.md, where nothing else is said

inline constexpr double kBlockStartUs = 0.3;
// Between the starts of two blocks of a grid: 58.6 us for 96,256 blocks of 128 threads, 115.4 for twice as
// many of 64 (docs/notes/2026-11-28-small-kernels.md).
inline constexpr double kBlockLaunchUs = 0.6e-3;
// How well the starts of many blocks go on beside all else: 28.9 us of starts and 24.1 of memory
// take 30.0, 14.4 and 24.1 take 24.1 (the same note).
inline constexpr double kOverlapOfStarts = 8;
// 79.0 us for 66.3 of a gelu of 44 M bf16, 293 for 221 of a longer chain, 395 for 409 of a sine of picked
// halves (the same note): enough that equals are not packed.
inline constexpr double kPackedTurnsCost = 1.03;
// Kernels whose threads load, compute and store once, fitted by hand to 3,700 of them
// (docs/notes/2026-11-30-blocks-of-small-kernels.md): one of a warp that does nothing, an access of a thread,
// an instruction of its first element, each further element and its instructions, the start of a warp, and an
// access of a warp beside others. Bytes under way in a multiprocessor from which on the cache gives its full
// rate.
inline constexpr double kStraightUs = 0.83, kAccessUs = 3.1e-3, kInstructionUs = 2.7e-3, kElementUs = 6e-3,
                        kNextInstructionUs = 1.2e-3, kWarpStartUs = 2.5e-3, kWarpAccessUs = 0.6e-3,
                        kCacheBytesInFlight = 5.4e3;
inline constexpr double kThreadInstructions = 20,
                        kAccessInstructions = 4;  // beside elements: counted roughly
inline constexpr double kMemoryLatencyUs = 0.7;  // under load; each round of a loop that has no product waits
inline constexpr double kLineLatencyUs = 0.03;  // a load whose cache line is there: 2026-11-23-predictions.md
// Rows of narrow elements that a thread moves one by one: docs/notes/2026-11-29-shifted-rows.md.
inline constexpr double kNarrowAccessCost = 1.2;
// Rows that begin anywhere, copied ahead where much of them is still in the cache: the same note.
inline constexpr double kShiftedAheadCost = 1.3;
// Microseconds of a kernel that pass while the next one is launched: the same note.
inline constexpr double kHiddenByLaunchUs = 1.2;
inline constexpr double kLineBytes = 128;     // of a cache line
inline constexpr double kVisitsOfStore = 2;   // of a line, for one of a load: docs/notes/2026-11-26-sweep.md
inline constexpr double kSharedReadRate = 4;  // of the cache's, for what all programs read; no record
inline constexpr Index kSectorBytes = 32;     // of a cache line: what moves at least
inline constexpr double kScanStepUs = 0.003;  // a row of a thread's run: an addition that waits. No record
inline constexpr double kInstructionsOfScanStep = 4;  // a shuffle, its addition and their choice: counted
// A shuffle and what combines it, for each word; a value with its place has three. Counted roughly.
inline constexpr double kInstructionsOfPartner = 3, kWordsOfPlace = 3;
inline constexpr double kExchangeUs = 0.2;         // a barrier with its shuffles
inline constexpr double kExchangeOf1024Us = 0.35;  // what 1024 threads add to it
inline constexpr double kClusterUs = 0.8;          // the same between the blocks of a cluster
inline constexpr double kShuffleUs = 0.08;         // within a warp
inline constexpr double kIssueShare = 0.8;         // of the peak issue rate
inline constexpr double kLanes = 128;              // of a multiprocessor: f32 instructions of a cycle
inline constexpr double kIssueClockMhz = 1.7e3;    // fitted by hand on 2026-11-21, no record
inline constexpr double kThreadsToFill = 512;      // that keep the four schedulers of a multiprocessor busy
inline constexpr double kIndependent = 4;          // elements of a thread that do not wait for one another
inline constexpr double kUnitsOfGpc = 16;          // of an H200's 16 or 18: what a cluster may lie in
// A sorting network's comparison and exchange, with its places: chosen, not measured.
inline constexpr double kInstructionsOfComparator = 24;
// Little's law: with less in flight, a multiprocessor leaves bandwidth unused.
inline constexpr double kBytesInFlight = 32e3;
// Bytes of a loop's round that ptxas keeps under way: two or three vectors of a thread when the round
// computes on them one by one: it asks for the next ones in the registers of those it is done with (LDG of a
// product of one row by nvdisasm: docs/notes/2026-11-22-rounds-on-the-h200.md).
inline constexpr double kUnderWayBytes = 3 * 16;
// Bytes that memory moves for a row of a strip, at least, where the strip is so tall that its neighbours come
// to the same row at another time. Column sums beside two stored results, four tensors of 768 columns, on an
// H200: of 32,768 rows in strips of 8 columns 462 us where the bytes take 155, of 16,384 in strips of 16 108
// for 69, of 8,192 in strips of 32 37 for 42 (docs/notes/2026-11-29-training-on-a-gpu.md).
inline constexpr double kLeastOfStrip = 96, kTallStripBytes = 4 << 20;
// A row's sum: with one row of quantised weights 100 of the 260 instructions of each of 512 threads were for
// two sums (counted, docs/notes/2026-11-22-few-rows-and-groups.md).
inline constexpr double kInstructionsOfRowSum = 50;
// Machine instructions of a primitive on f32, roughly; values that end in narrow floats take the short forms.
inline double primitive_instructions(tile::Prim prim, bool narrow) {
  switch (prim) {
    case tile::Prim::div:
      return narrow ? 2 : 8;
    case tile::Prim::exp:
    case tile::Prim::exp2:
    case tile::Prim::rsqrt:
    case tile::Prim::sqrt:
    case tile::Prim::reciprocal:
      return narrow ? 2 : 6;
    case tile::Prim::sigmoid:
      return narrow ? 4 : 14;
    case tile::Prim::rem:
    case tile::Prim::pow:
    case tile::Prim::atan2:
      return 40;
    case tile::Prim::expm1:
    case tile::Prim::log:
    case tile::Prim::log2:
    case tile::Prim::log1p:
    case tile::Prim::erf:
      return 18;
    case tile::Prim::tanh:
      return narrow ? 4 : 18;
    case tile::Prim::sin:
    case tile::Prim::cos:
    case tile::Prim::tan:
      return 24;
    default:
      return 1;
  }
}

// Machine instructions of other steps on an element. Counted roughly in SASS, no record.
inline constexpr double kInstructionsOfCast = 0.5;
inline constexpr double kInstructionsOfRandom = 10;             // four neighbours share a run of the cipher
inline constexpr double kInstructionsOfIndexed = 6;             // gather, scatter, atomic_add
inline constexpr double kInstructionsOfPlace = 4;               // argmax: two comparisons, two selections
inline constexpr double kInstructionsOfDivisionByConstant = 4;  // a product's high word, a shift
inline constexpr double kInstructionsOfOther = 0.2;  // addresses of plain loads and stores are shared
inline constexpr double kInstructionsOfInnerSum =
    0.25;  // a tensor-core instruction adds four elements a lane

// A multiply-add of a product by element loops: 0.31 to 0.34 of the peak rate in 8192 rows of a GPT-2 block
// (docs/notes/2026-11-22-whole-programs.md).
inline constexpr double kOfMultiplyAdd = 2.4;
// How memory, a block's walk and arithmetic overlap, as the power of their norm. Two blocks of a
// multiprocessor: softmax rows. Of one alone the walk holds its reads and its arithmetic, which count twice
// where they are added: 18 schedules of four kernels over rows took 0.53 of their price by a power of 1.2
// (docs/notes/2026-11-26-epilogue-stages.md). With products that power stays.
inline constexpr double kOverlap = 5, kOverlapOfTwo = 2.5, kOverlapOfProducts = 1.2;
// Rows that go through shared memory on their way: by an eighth to a quarter slower than predicted (softmax,
// layer_norm, docs/notes/2026-11-21-second-h200.md), but for blocks that have a multiprocessor to themselves.
inline constexpr double kStagedCost = 1.18;
// Rows over clusters, which start and end together: by a fifth (cross-entropy,
// docs/notes/2026-11-21-fifth-h200.md); not loops that meet once, behind them.
inline constexpr double kClusterCost = 1.18;
// The price of an element: of two schedules that take as long the one with fewer elements a thread: its code
// is shorter. Chosen.
inline constexpr double kOfAnElement = 0.0005;

// What a grid and a loop that arguments decide are taken for: a large grid, a short loop. Chosen.
inline constexpr double kUnknownPrograms = 100000;
inline constexpr Index kUnknownRounds = 16;

// Values used by two element loops are kept where computing them again costs more FLOPs than this; with many
// elements in a thread (kManyElements) its registers are worth more. Chosen by hand on 2026-11-21, no record.
inline constexpr double kKeepAboveFlops = 4, kKeepAboveFlopsWhereMany = 24;
// The same in blocks of few enough threads that each may have twice the registers of its elements, where a
// sigmoid is kept: 58.3 us computed twice, 29.1 kept (docs/notes/2026-11-29-launches-together.md). An
// exponential is not: of 17 softmaxes it was between 0.69 and 1.12 times as slow.
inline constexpr double kKeepAboveFlopsWhereRoom = 14;
inline constexpr int kThreadsWithRoom = 512;

// Addresses, counters and the temporaries of an expression, as ptxas usually needs. No record.
inline constexpr int kBaseRegisters = 20;
// Elements of the largest tile in one thread: more do not stay in registers; of half of them a thread has
// registers left for overlap. Elements of a row that one block holds only with all its registers.
inline constexpr Index kMaxElements = 64, kLongRow = 32768;
// Elements of a tile in one thread from which on loads are not all kept: as f32 half of the registers of a
// thread at full occupancy.
inline constexpr Index kManyElements = 32;
inline constexpr Index kKeptPerThread =
    32;  // f32 that a thread keeps beside its temporaries, of 64 registers
// Programs of a multiprocessor, and elements of their tiles, up to which narrower accesses are tried. Chosen.
inline constexpr double kSmallPrograms = 16;
inline constexpr Index kSmallTile = 2048;
// Programs and blocks of a multiprocessor up to which loops spread their rows over a cluster. Chosen.
inline constexpr double kFewPrograms = 2, kFewBlocks = 8;
// Elements of a row from which on its sum by tensor cores saves anything.
inline constexpr Index kShortestInnerRow = 64;

// --- schedules of products and back-to-back matmuls (schedule/dot_candidates.cpp)

// Share of the tensor cores' rate beside the steps between the dots of a back-to-back matmul by mma.sync, or
// of one that only multiplies; and what it costs to wait for these, or for the other warpgroup. With two of
// them, taking turns was worth 2 % to heads of 64 and cost as much with heads of 128
// (docs/notes/2026-11-21-dot-chains.md).
inline constexpr double kB2bShare = 0.6, kPlainB2b = 1.1, kFa3Pingpong = 1.02;
// A back-to-back matmul by warpgroups: a loop's start and end; a round of it; each product that a round adds
// up beside the first; an element of the tile that is computed between a round's products, and what a mask
// adds to it; and the products' share of the tensor cores' rate. Fitted to the best schedule of 115 tiles of
// forward, d q and d k with d v in 13 shapes, heads of 32 to 128, 64 to 192 rows by 32 to 128, on an H200: a
// root mean square of 11 %, none further away than 35 %, and the tile that is taken 1 % slower than the best
// one in the mean (docs/notes/2026-11-29-attention-rounds.md).
inline constexpr double kB2bLoopUs = 1.33, kB2bRoundUs = 0.24, kB2bSumUs = 0.17, kB2bElementUs = 7.5e-6,
                        kB2bMaskedUs = 8.7e-6, kB2bPeak = 0.81;
// A random word that a round draws, in a run of the cipher for four: what dropout adds to the forward, d q
// and d k with d v of 64 x 6 causal heads, 256 x 64, on an H200 is 23, 23 and 32 us, 1.6e-4 to 2.2e-4 us for
// each element of a round. Less is taken, for the rest of the first two is priced 7 us too long
// (docs/notes/2026-11-29-training-on-a-gpu.md).
inline constexpr double kB2bRandomUs = 1.5e-4;
// Rounds that overlap, or warpgroups that take turns, where a round has three products or more: those of d
// q, 1.33 to 1.72 times as long as in order in seven shapes with heads of 64 to 128 on an H100
// (docs/notes/2026-11-25-masks-of-reductions.md). Nothing is spilled; why was not looked into.
inline constexpr double kThreeOverlapped = 1.41;
// Registers of a thread in the rounds of a back-to-back matmul for addresses, descriptors and temporaries:
// what is left beside them and the accumulators takes loads of the next round. ptxas then spills 12 bytes at
// most in d k and d v with heads of 64 and 128, 260 with 16 registers more.
inline constexpr Index kB2bOtherRegisters = 32;
// Rounds of a program below which turns pay: both warpgroups begin their rounds together, and turns part
// them. That is worth 6 % to nine rounds, and loses 5 % of 65 (docs/notes/2026-11-22-short-chains.md).
inline constexpr double kFewRounds = 16;
// A round of a loop inside another's, which waits for its blocks, its product and the others' turn, whatever
// its size: 496 us for a sum over (32, 1024) in blocks of 64x64x16 by 144 programs; and an element of a tile
// that the threads load themselves in a round: 413 us for an attention of 1024 programs that computes its
// queries in each round, 164 where they are stored (docs/notes/2026-11-24-unaligned-rows.md).
inline constexpr double kNestedRoundUs = 0.22, kRoundLoadUs = 7.7e-5;
// An element of such a product, of which the outer loop makes what it carries (a row's maximum and sum) while
// nothing multiplies: 1,025 us for 8192 rows of 50304 classes, 8,198 for 32768 rows that are multiplied
// twice, depth 768, on an H100 (docs/notes/2026-11-26-rounds-of-attention.md).
inline constexpr double kNestedElementUs = 6.5e-5;
// Results of a back-to-back matmul that the copy engine sends: predicted, to be measured (the same note).
inline constexpr double kB2bTmaStore = 1.01;
// dot=mma: a back-to-back matmul whose threads have nobody to hide their waiting, or each place of the
// pipeline fewer: predicted, docs/notes/2026-11-22-mma-chains.md.
inline constexpr double kAlone = 1.3, kFewerStages = 0.05;
// The group_m of results that are few tiles wide: 8 rows of tiles were 1 to 7 % faster than 16 in seven of
// eleven products of GPT-2's step, and no slower in the others (docs/notes/2026-11-29-attention-rounds.md).
inline constexpr double kFewColumnTiles = 6, kOtherGroupOfFewColumns = 1.02;
inline constexpr int kGroupOfFewColumns = 8;
inline constexpr double kOtherGroupM = 1.01;  // the first group_m is taken unless another is measured faster
// Values of group_m that are tried for a product, in this order, around kWarpgroupRate.group_m; and fewer for
// warpgroups in turns and for staged results, which multiply the schedules. Chosen, not measured.
inline constexpr int kGroupMs[] = {16, 12, 8, 32}, kFewGroupMs[] = {16, 8};
// The same for scaled accumulation, of tiles of 256 rows and of fewer. With 256 rows 4 and 8 took 863 and 866
// us, 16 took 881 (docs/notes/2026-11-22-eight-bit-chains.md); with b fetched for two blocks at once 8 took
// 847, and with 128 rows 989 for 1,032 (docs/notes/2026-11-22-rounds-on-the-h200.md).
inline constexpr std::array kScaledTallGroupMs = {8, 4, 16}, kScaledGroupMs = {16, 8, 32};
// fma_blocks: rows of tiles in a group (chosen, not measured); and stages of the pipeline, in the order in
// which they are tried: three are those of docs/notes/2026-11-26-f32-products.md.
inline constexpr int kFmaGroupM = 8, kFmaStages[] = {3, 2, 4};
inline constexpr double kOwnBlocks = 1.005;  // where two blocks could share what they fetch; chosen likewise
// mma.sync on a device that has wgmma: docs/notes/2026-11-21-h200-gemm.md.
inline constexpr double kSlowerByThreads = 1.6;
// An element of a block that a thread copies by itself, in one program of a multiprocessor: 88 us for
// 1001x3333x777 of odd strides, where 25 were predicted (docs/notes/2026-11-24-unaligned-rows.md).
inline constexpr double kCopiedElementUs = 1.46e-4;
// Cycles of a multiprocessor for an element of a result whose rows begin anywhere, f16 64x(1024x16 .
// 16x7789): stored alone from registers, where a warp writes parts of eight rows' sectors (3,853 us on an
// H100); and by a warp a row, from shared memory (817 to 907 us on an H200, where 290 to 340 were predicted
// without).
inline constexpr double kAloneElementCycles = 1.4, kRowElementCycles = 0.2;

// Shared memory of a block that no tile may have: the driver's KiB, and barriers and small arrays before the
// first multiple of 1024.
inline constexpr Index kReservedSharedBytes = 3 * 1024;
inline constexpr Index kUnknownTrips = 64;  // what a loop that arguments decide is taken for. Chosen
inline constexpr Index kMaxStages = 8;      // of a pipeline
// Fewest places of the pipeline beside results that wait to be stored (with 2 it lost a third,
// docs/notes/2026-11-21-fourth-h200.md), and places of these.
inline constexpr Index kFewestStages = 4, kFewestStoreStages = 2, kMostStoreStages = 4;
// A pipeline has so many places where stages of results need the room of one, and is so much dearer: three
// blocks of 128x192 are multiplied in 1.3 us, about what memory takes. Chosen.
inline constexpr Index kFewestBesideStores = 3;
inline constexpr double kShortPipeline = 1.03;
// A schedule is so much dearer for each tile that its threads load or store, where the copy engine could.
// Chosen: enough that the engine is taken where both are predicted alike. What threads really lose is more
// (docs/notes/2026-11-28-tiles-by-stages.md), but a price with all of it made fusion cut such kernels.
inline constexpr double kTileByThreads = 1.02;
inline constexpr Index kMaxCopies = 4;  // blocks under way by cp.async: enough for memory's latency
// A back-to-back matmul computes longer on a block than memory takes to bring one.
inline constexpr Index kMaxB2bStages = 2;
inline constexpr Index kLargeTile = 128 * 128;  // 64 accumulators for each of 256 threads
inline constexpr int kB2bGroupM = 16;           // rows of blocks in a group, as of a product alone
inline constexpr Index kWideDepth = 128;        // of heads: warpgroups that take turns lose (kFa3Pingpong)
inline constexpr double kHiddenStoreBytes = 4;  // of an element: one result leaves beside the next tile
// mma: of the sums and products of a back-to-back matmul in one thread's registers; threads of a
// multiprocessor that hide each other's waiting.
inline constexpr Index kMostAccumulators = 200, kThreadsForWaits = 256;
// Programs of fma_blocks that the registers of a multiprocessor are cut for. A thread's elements of the
// result decide how many warps fit without spills: docs/notes/2026-11-26-f32-products.md.
inline constexpr int fma_programs_per_sm(Index elements, Index threads) {
  const Index warps = elements >= 128 ? 8 : elements >= 64 ? 12 : 16;
  return static_cast<int>(warps * 32 / threads);
}
// wgmma: registers of a multiplying thread for the accumulator, what is loaded beside it and what its columns
// are reduced to, which begins where the accumulator ends.
inline constexpr Index kEpilogueRegisters = 216;
// Registers of a thread for the accumulator and a row of a piece, where a warpgroup has a tile of its own:
// 240 but for addresses. AdamW's 248 spilled 1,000 bytes, and the product took 4,084 us for 3,488
// (docs/notes/2026-11-26-epilogue-stages.md).
inline constexpr Index kPingpongRegisters = 224;
// What the same thread needs beside these: where a tile that it loads lies, twice where its rows end
// anywhere, and rows that warps send because they are not aligned (send_rows). With more in all than are
// left, 250 to 2,000 bytes were spilled, else none to 48 (docs/notes/2026-11-28-small-kernels.md).
inline constexpr Index kAddressRegisters = 4, kRowSenderRegisters = 20;
// Functions of so many FLOPs, computed on such a tile, are under way at once: polynomials, not quotients or
// roots; and FLOPs of theirs for each register that they take. The same note.
inline constexpr double kFlopsOfFunction = 8, kFlopsOfRegister = 2;
// An exponential that two steps of a back-to-back matmul read is kept: it takes the place of what it is
// computed from.
inline constexpr double kKeptFlops = 8;

// What the passes are told of NVIDIA's devices.
inline void fill_fitted(tile::Target& target, const Arch& arch) {
  // layer_norm before 8192 x 256 x 768: 42 us where two kernels took 14 (docs/notes/2026-11-22-whole-
  // programs.md).
  target.round_wait_s = kMemoryLatencyUs * 1e-6;
  // "By an eighth to a quarter slower than predicted": docs/notes/2026-11-21-second-h200.md; the lesser,
  // since kernels that are compared have much in common.
  target.prediction_error = 0.125;
  // 128x8192x8192 took 47.9 us as 128x192 in 3 parts, 8x8192x8192 37.9 as 64x256 in 4
  // (docs/notes/2026-11-22-sixth-h200.md).
  target.burst_share = 0.4;
  target.program_start_us = 0.7;  // docs/notes/2026-11-26-f32-products.md
  target.alone_share = 0.7;       // docs/notes/2026-11-21-blocks-by-data.md
  target.rows = row_cuts();
  target.vector_dots = vector_dots();
  // 64 x 64 are the registers of 128 threads.
  target.b2b_blocks = {.edge = 64, .walked = 64, .rows = 64, .columns = 256, .inner_depth = 32};
  target.matrix_units.clear();
  if (arch.has_warpgroup_dots()) target.matrix_units.push_back(warpgroup_unit());
  target.matrix_units.push_back(thread_fed_unit(target.shared_bytes));
}

}  // namespace tilewright::cuda
