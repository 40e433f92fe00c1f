// What was fitted to cores with caches and vector units: a row is a name, its value, and where it comes from.
#pragma once

#include <tilewright/tile/target.h>

#include <algorithm>
#include <iterator>

namespace tilewright::cpu {

// Rows of a block of sums that tw_cpu/dot.h keeps in registers.
inline constexpr Index kRegisterRows = 6;

inline tile::RowCuts row_cuts(int vector_bytes) {
  return {
      .elements = 4096,                 // ~1 µs of memory time, which amortises a program's start
      .turned_edge = 64,                // of f32 4 cache lines
      .picked_elements = 64,            // chosen, not measured
      .loop_elements = 8 * 4096,        // several streams, which take some pages to get up to speed
      .joined_elements = 4096,          // docs/notes/2026-11-29-short-rows.md
      .joined_columns = 256,            // chosen, not measured
      .joined_rows = vector_bytes / 4,  // whose lanes are folded together
      .columns = 512,                   // chosen, not measured
      .column_rows = 32,                // with 512 columns of f32 64 KiB, a part of L2
      .strip_columns = 64,              // 4 cache lines of f32
      .shared_programs = 64,            // chosen, not measured
      .shared_elements = 1 << 16,       // chosen, not measured
  };
}

// tw_cpu/dot.h packs blocks of both operands and keeps 6 rows and a few vectors of the result in registers;
// tw_cpu/dot_few.h reads an operand once, where it stands, if the other one has fewer rows than that.
inline tile::PackedDots packed_dots(int vector_bytes) {
  tile::PackedDots out{
      .register_rows = kRegisterRows,
      .pack_cycles = 0.5,           // docs/notes/2026-11-21-cpu-gemm.md
      .result_cycles = 1,           // docs/notes/2026-11-21-cpu-gemm.md
      .program_cycles = 1000,       // docs/notes/2026-11-21-cpu-gemm.md
      .merge_cycles = 8000,         // a second kernel's start on all cores
      .most_rows = 516,             // a block's c may reach into L3; whole 6 rows
      .most_columns = 512,          // with its depth of f32, 512 KiB of b: half of an L2 of 1 MiB
      .depth_bytes = 1024,          // 256 of f32
      .widens = vector_bytes < 64,  // products of 16 bits are instructions of 64-byte vectors
      .any_size = {128, 128},
      .any_size_depth = 256,
      .streamed_rows = 256,  // docs/notes/2026-11-21-cpu-gemm.md, "Few rows"
      .long_walk = 4096,     // docs/notes/2026-11-21-cpu-gemm.md, "Few rows"
      .short_walk = 512,  // each element of c is one chain of additions as long as this, not one of each lane
      .across_columns = 2048,   // their part of c stays in L1
      .across_step = 64,        // whole cache lines of every type
      .across_rows = 8,         // as many streams as prefetchers follow
      .shared_depth = 1 << 14,  // a few µs of memory time
  };
  std::copy_if(std::begin(kAllDTypes), std::end(kAllDTypes), std::back_inserter(out.matrix_types),
               [](DType dtype) { return size_bytes(dtype) <= 2; });
  return out;
}

// What tile registers multiply (TilesOf in tw_cpu).
inline constexpr DType kTileTypes[] = {DType::bf16, DType::i8, DType::u8};

// Tile registers (tw_cpu/dot_tiles.h): 2 x 2 tiles of 16 x 16 sums, of rows of 64 bytes.
inline void fill_tile_registers(tile::Target& target) {
  tile::PackedDots& dots = *target.packed_dots;
  dots.matrix_types.assign(std::begin(kTileTypes), std::end(kTileTypes));
  dots.unit = {.rows = 32,
               .columns = 32,
               .step_bytes = 64,
               .depth_bytes = 512,  // 32 rows and 32 columns of it stay in L1: docs/notes/2026-11-26-amx.md
               .speed = 8,          // docs/notes/2026-11-26-amx.md
               .share = 0.5};       // docs/notes/2026-11-26-amx.md
  // An instruction of 2 x 16 x 16 x 32 operations in 16 cycles, at the 3 GHz of host_tile_target().
  target.matrix_flops_per_s = target.units * 1024 * 3e9;
}

inline tile::B2bBlocks b2b_blocks() {
  return {
      .edge = 256,    // 256 x 256 of f32 are a quarter of L2, and operand b is packed for as many rows
      .walked = 256,  // with 64 rows of f32 64 KiB, a part of L2
      .rows = 64,
      .columns = 256,
      .wide_rows = 128,    // packing b for 64 rows of depth 64 takes a tenth of the time:
                           // docs/notes/2026-11-22-cpu-rows.md
      .wide_loop = 2048,   // so long that the half of a block that a causal mask leaves empty matters less
      .wide_programs = 4,  // every core still has several
      .inner_depth = 256,  // the depth of one product's blocks
  };
}

// --- schedules (candidates.cpp)

// What a size that is a parameter is taken for: large, so that the choice suits the launches that take time.
inline constexpr std::int64_t kAssumedSize = 4096;
// Fewer chains of instructions than four vectors hide less latency; more spill. Fitted by hand, no record.
inline constexpr double kOfTwoChains = 1.2, kOfEightChains = 1.05;

// --- printed loops (loops/, text/)

// A core looks about 300 instructions ahead. Where one vector's work is far shorter than that, it overlaps
// vectors by itself and two copies only save loop overhead (measured on Zen 4: elu 2.47 ns a vector with two
// copies, 2.44 with four); long chains and accumulators need all the copies that the schedule allows.
inline constexpr double kShortOperations = 64;
// Functions that are worth this many operations are not put inside each other: with a statement for each the
// copies' work alternates, so that they overlap. No record.
inline constexpr double kHeavyFlops = 8;
// Values used by two loops are written to a buffer when computing them again costs more than this many
// operations: about what a store and a load from L1 or L2 cost. No record.
inline constexpr double kKeepAboveFlops = 4;
// A loop's start, and a store past the caches, which waits for memory about as long as an exponential
// computes: in operations on a vector. No record.
inline constexpr double kLoopOverhead = 1, kStreamedStore = 10;

// A block's columns are walked outside and its rows inside where at least so many operations on a vector are
// the same for all rows, of which there are many, and where a block is so narrow, in vectors, that a row's
// end is near anyway. Chosen, not measured.
inline constexpr double kSameForAllRows = 6;
inline constexpr Index kManyRows = 8, kNarrowVectors = 16;
// Rows are walked as one where that leaves at most so many of the vectors: what is the same for all rows is
// read at places that must be computed. Chosen, not measured.
inline constexpr double kJoinedVectors = 0.9;

// Bytes of a first-level cache, and up to how many bytes what is left there of several walks matters:
// measured on Zen 5, as overflows_first_level() in loops/row_walks.cpp says.
inline constexpr Index kFirstLevelBytes = 32 * 1024, kMostOfFirstLevelBytes = 4 * kFirstLevelBytes;
// Rows are fetched so far ahead of those that are computed. Softmax of rows of 4 KiB, as a share of what
// copying takes: 0.96 with the next row fetched, 1.06 with the second next and with the fourth, 1.03 with the
// eighth; rows of 16 KiB want the next one (docs/notes/2026-11-22-cpu-rows.md).
inline constexpr Index kFarEnoughBytes = 16 * 1024;

// --- launches (jit/program.cpp)

// Waking the pool pays from about this much work on: a dispatch costs 1 to 2 µs, and a worker that sleeps 50.
inline constexpr double kInlineUs = 20;
// Whether a launch stays on the thread that calls it.
inline bool runs_on_caller(double programs, double program_us) {
  return programs <= 1 || programs * program_us < kInlineUs;
}

// What the passes are told of a core's kind; rates, caches and the number of cores are those of the machine.
inline void fill_fitted(tile::Target& target) {
  target.ends_anywhere = true;      // docs/notes/2026-11-24-sizes-that-change.md
  target.alone_share = 0.7;         // of a split loop's programs: docs/notes/2026-11-21-blocks-by-data.md
  target.prediction_error = 0.125;  // as the GPUs': no record
  target.rows = row_cuts(target.vector_bytes);
  target.packed_dots = packed_dots(target.vector_bytes);
  target.b2b_blocks = b2b_blocks();
}

}  // namespace tilewright::cpu
