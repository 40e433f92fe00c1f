// Reductions and scans by where their partials meet; see exchange_cost.h.
#include "backends/cuda/schedule/exchange_cost.h"

#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cuda {

using printer::Instr;

double sums_of_rows(const Layouts& layouts) {
  double sums = 0;
  for (const auto& [loop, place] : layouts.loops)
    if (place.part == Part::rows)
      sums += static_cast<double>(std::count_if(loop->body.begin(), loop->body.end(), [](const Instr& in) {
        return in.kind == Instr::Kind::reduce;
      }));
  return sums;
}

namespace {

// Groups of rows that a warp has; 1 where a row has whole warps.
double groups_in_warp(const TileFrame& f) {
  return f.threads_per_row < 32 ? static_cast<double>(std::min(32 / f.threads_per_row, f.groups)) : 1;
}

// The share of the reductions that combine what several warps have, through shared memory: along rows of more
// than a warp, and down columns of more groups of rows than a warp has.
double share_between_warps(const tile::Schedule& schedule, const Layouts& layouts) {
  double all = 0, between = 0;
  for (const auto& [loop, place] : layouts.loops) {
    const Axes axes = long_axes(loop->shape);
    if (place.part == Part::one || axes.empty()) continue;
    const TileFrame& f = layouts.frame(place);
    for (const Instr& in : loop->body) {
      if (in.kind != Instr::Kind::reduce) continue;
      // What is left of a tile that was reduced along its rows is a column.
      const bool down = axes.size() == 2 ? in.op->axis == axes.front() : place.part == Part::rows;
      all += 1;
      between += (down ? f.groups > groups_in_warp(f) : f.threads_per_row > 32) ? 1 : 0;
    }
  }
  return all > 0 ? between / all : threads_per_row(schedule) > 32 ? 1 : 0;
}

}  // namespace

double instructions_down(const Layouts& layouts, int threads) {
  double instructions = 0;
  for (const auto& [loop, place] : layouts.loops) {
    const Axes axes = long_axes(loop->shape);
    if (place.part == Part::one || axes.empty()) continue;
    const TileFrame& f = layouts.frame(place);
    const double columns = static_cast<double>(f.col_steps() * f.vector), in_warp = groups_in_warp(f);
    for (const Instr& in : loop->body) {
      if (in.kind != Instr::Kind::reduce || axes.size() != 2 || in.op->axis != axes.front()) continue;
      const double words = finds_place(in.op->monoid) ? kWordsOfPlace : 1;
      instructions += threads * columns * words * kInstructionsOfPartner *
                      (std::log2(in_warp) + (f.groups > in_warp ? 1 : 0));
    }
  }
  return instructions;
}

double exchange_us_of(const tile::Schedule& schedule, const Layouts& layouts) {
  const double between = share_between_warps(schedule, layouts);
  return between * (kExchangeUs + kExchangeOf1024Us * schedule.threads / 1024) + (1 - between) * kShuffleUs;
}

ScanCost scan_cost(double scanned, const Layouts& layouts, int threads) {
  ScanCost cost;
  if (scanned == 0) return cost;
  for (const TileFrame& f : layouts.frames) {
    if (f.map != RowMap::runs) continue;
    cost.block_us += static_cast<double>(f.row_steps()) * kScanStepUs;
    if (f.groups == 1) continue;
    const double in_warp = groups_in_warp(f);
    const double columns = static_cast<double>(f.col_steps() * f.vector);
    cost.instructions += scanned + static_cast<double>(threads) * columns *
                                       (kInstructionsOfScanStep * (std::log2(in_warp) + 1));
    cost.block_us += static_cast<double>(f.row_steps()) * kScanStepUs + kShuffleUs;
    if (f.groups > in_warp) cost.block_us += 3 * (kExchangeUs + kExchangeOf1024Us * threads / 1024);
  }
  return cost;
}

}  // namespace tilewright::cuda
