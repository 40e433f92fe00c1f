// A tile's steps take as long as the slowest of: multiplying, reading the blocks on chip, and taking them in.
#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <cmath>

namespace tilewright::tile {

namespace {

Index inside(Index of, Index edge) { return of > 0 ? std::min(of, edge) : edge; }

struct TileCycles {
  double loop = 0, leaving = 0;
};

TileCycles tile_cycles(const TensorTiles& t, const TileRate& rate) {
  const double steps = static_cast<double>(ceil_div(t.k * t.operand_bytes, rate.step_bytes)),
               step = static_cast<double>(rate.step_bytes), group = static_cast<double>(rate.group_rows);
  const auto bm = static_cast<double>(t.bm), bn = static_cast<double>(t.bn);
  // Cycles of tensor cores. An instruction takes as many bytes of k of any type: 8 bits are twice as fast.
  const double tensor = bm * bn * step / rate.flops_per_cycle;
  // Every group of rows reads theirs of a and all of b; each block is written once.
  const double read = bm / group * (group + bn) * step, written = (bm + bn) * step;
  const double shared = rate.chip_share * (read + written) / rate.chip_bytes_per_cycle;
  const auto lines = [&](double of_row) { return 1 + rate.second_line * (of_row - 1); };
  const double intake = (static_cast<double>(inside(t.inside_m, t.bm)) * lines(t.a_lines) +
                         static_cast<double>(inside(t.inside_n, t.bn)) * lines(t.b_lines)) *
                        step / rate.intake_bytes_per_cycle;
  // Additions of blocks' products are hidden by nothing: 4096^3 took 298 us for 224 predicted without them,
  // 2026-11-27.
  const double adding = t.two_level ? bm * bn / rate.instructions_per_cycle : 0;
  return {steps * (std::max({tensor, shared, intake}) + adding),
          ((t.by_copy_engine ? rate.send_cycles : rate.store_cycles) + t.leaving_cycles) * bm * bn};
}

// All programs that one unit carries out.
double programs_cycles(const TensorTiles& t, const TileRate& rate, double waves) {
  const TileCycles tile = tile_cycles(t, rate);
  if (!t.pingpong) return waves * (tile.loop + tile.leaving);
  const double leaving = rate.alone_longer * tile.leaving;
  const double turns = waves * (std::max(tile.loop, (tile.loop + leaving) / 2) + rate.turn_cycles);
  return rate.alone_believed * (turns + leaving);
}

}  // namespace

bool fits_pingpong(const TileRate& rate, Index bm, Index bn) {
  return bm % rate.group_rows == 0 && bm * bn <= rate.own_tile;
}

double shared_tiles_us(const DotTile& tile, double flops, double waves, double peak, const Target& target) {
  const double share = waves > 1 || tile.alone == 0 ? tile.share : tile.alone;
  const double unit_flops_per_us = share * peak / std::max(1, target.units) * 1e-6;
  return waves * (flops / unit_flops_per_us + target.program_start_us);
}

double tensor_tiles_us(const TensorTiles& t, const TileRate& rate, const Target& target) {
  const double units = std::max(1, target.units);
  const double waves = std::ceil(t.programs / units);
  const double compute_us = (programs_cycles(t, rate, waves) + rate.fill_cycles) / rate.clock_hz * 1e6;
  // What the programs of a wave read that no other program of the wave has brought to the cache, at the
  // memory's rate; a part of it shows.
  const double together = std::min(t.programs, units);
  const double high = std::min(static_cast<double>(t.group_m), together);
  const double rows = high * static_cast<double>(inside(t.inside_m, t.bm)) +
                      together / high * static_cast<double>(inside(t.inside_n, t.bn));
  const auto piece = static_cast<double>(t.piece_bytes);
  const double bytes_per_s =
      target.memory_bytes_per_s * (piece > 0 ? piece / (piece + rate.opening_bytes) : 1);
  const double memory_us = waves * rows * static_cast<double>(t.k * t.operand_bytes) / bytes_per_s * 1e6;
  // Memory's time is hidden where all programs run at once: such a product takes as long as its blocks take
  // into a unit (docs/notes/2026-11-22-sixth-h200.md).
  const double shown_us = waves > 1 ? memory_us / rate.hidden : 0;
  return std::max(compute_us + shown_us, memory_us) + target.launch_s * 1e6;
}

}  // namespace tilewright::tile
