// A model of Hopper's tensor cores, fitted to docs/notes/2026-11-21-h200-gemm.md.
#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <cmath>

namespace tilewright::tile {

namespace {

constexpr double kFlopsPerCycle = 4096;  // of a multiprocessor, dense 16-bit; twice as many of 8 bits
constexpr double kSharedBytesPerCycle = 128;
constexpr double kClockHz = 1.45e9;  // what is left of 1.98 GHz at full load, stalls of the pipeline included
constexpr Index kRows = 64, kStepBytes = 128;  // of one wgmma; of k in a block
// 64 shuffles, 64 conversions, 16 stores a thread of 128x256; 16 stmatrix instead of shuffles and stores
// (predicted).
constexpr double kStoreCyclesPerElement = 0.045, kSendCyclesPerElement = 0.03;
// What a multiprocessor takes in from L2: 10.7 TB/s for all of them, reached by tiles of 128x128.
constexpr double kIntakeBytesPerCycle = 56;
constexpr double kFillCycles = 1500;  // before the first block has arrived
// What opening a piece of memory costs, in the bytes that could be read meanwhile. Fitted to four products
// whose second kernel's share was assumed, not measured (docs/notes/2026-11-21-products-of-few-rows.md):
// right for 8 rows, wrong for 128, where it is not asked for (docs/notes/2026-11-21-fourth-h200.md).
constexpr double kPieceBytes = 80;

Index inside(Index of, Index edge) { return of > 0 ? std::min(of, edge) : edge; }

// Two programs on a multiprocessor: cycles from the last product of one to the first of the other, and how
// much longer one of two warpgroups takes over what both did. A gain of less than a few percent is not
// believed: predicted, docs/notes/2026-11-22-ping-pong.md.
constexpr double kTurnCycles = 200, kAloneLonger = 1.5, kBelieved = 1.03;
constexpr double kLanes = 128;                // of a multiprocessor
constexpr Index kMostOwnElements = 64 * 384;  // 192 registers of each of 128 threads

struct TileCycles {
  double loop = 0, leaving = 0;
};

TileCycles tile_cycles(const TensorTiles& t) {
  const double steps = static_cast<double>(ceil_div(t.k * t.operand_bytes, kStepBytes));
  const auto bm = static_cast<double>(t.bm), bn = static_cast<double>(t.bn);
  // 32 bytes of k an instruction, whatever the type: as many products of 8 bits in half the time.
  const double tensor = bm * bn * kStepBytes / kFlopsPerCycle;
  // Every 64 rows read theirs of a and all of b; each block is written once. What was measured is a tenth
  // better than this sum.
  const double read = bm / kRows * (kRows + bn) * kStepBytes, written = (bm + bn) * kStepBytes;
  const double shared = 0.9 * (read + written) / kSharedBytesPerCycle;
  const double intake = static_cast<double>(inside(t.inside_m, t.bm) + inside(t.inside_n, t.bn)) *
                        kStepBytes / kIntakeBytesPerCycle;
  return {steps * std::max({tensor, shared, intake}),
          ((t.sent ? kSendCyclesPerElement : kStoreCyclesPerElement) + t.leaving_cycles) * bm * bn};
}

// All programs that one multiprocessor carries out.
double programs_cycles(const TensorTiles& t, double waves) {
  const TileCycles tile = tile_cycles(t);
  if (!t.ping_pong) return waves * (tile.loop + tile.leaving);
  const double leaving = kAloneLonger * tile.leaving;
  return kBelieved * (waves * (std::max(tile.loop, (tile.loop + leaving) / 2) + kTurnCycles) + leaving);
}

}  // namespace

double leaving_cycles(double instructions) { return instructions / kLanes; }

bool fits_ping_pong(Index bm, Index bn) { return bm % kRows == 0 && bm * bn <= kMostOwnElements; }

double tensor_tiles_us(const TensorTiles& t, const Target& target) {
  const double units = std::max(1, target.units);
  const double waves = std::ceil(t.programs / units);
  const double compute_us = (programs_cycles(t, waves) + kFillCycles) / kClockHz * 1e6;
  // What the programs of a wave read that no other program of the wave has brought to the cache, at the
  // memory's rate; a third of it shows.
  const double together = std::min(t.programs, units);
  const double high = std::min(static_cast<double>(t.swath), together);
  const double rows = high * static_cast<double>(inside(t.inside_m, t.bm)) +
                      together / high * static_cast<double>(inside(t.inside_n, t.bn));
  const auto piece = static_cast<double>(t.piece_bytes);
  const double rate = target.memory_bytes_per_s * (piece > 0 ? piece / (piece + kPieceBytes) : 1);
  const double memory_us = waves * rows * static_cast<double>(t.k * t.operand_bytes) / rate * 1e6;
  // Memory's time is hidden where all programs run at once: 128x8192x8192 in 128x64 takes 39.8 us, as
  // long as its blocks take into a multiprocessor (docs/notes/2026-11-22-sixth-h200.md).
  const double shown_us = waves > 1 ? memory_us / 3 : 0;
  return std::max(compute_us + shown_us, memory_us) + target.launch_s * 1e6;
}

}  // namespace tilewright::tile
